import math
from dataclasses import replace

import pytest

from kpca_apps.cli.denoise.fit import _noise_lines
from kpca_apps.denoise.result import (
    Comparison,
    DenoisingResult,
    Evidence,
    ImageOutcome,
    MeasuredFile,
    Quality,
    Residual,
)
from kpca_apps.report.denoising.text import (
    decibels,
    dictionary_sentence,
    headline,
    law_lines,
    law_text,
    left_note,
    level_text,
    likeness_sentence,
    looks_like,
    noise_sentence,
    own_sentence,
    residual_sentence,
    standing_sentences,
)
from kpca_apps.report.text import Verbatim
from tests.report.denoising_examples import compared, counted, failed, image, law, with_dictionary
from tests.report.pages import render_denoising


def say(*images: ImageOutcome) -> str:
    return "".join(headline(DenoisingResult(images)))


def test_the_headline_says_how_many_and_how_much() -> None:
    assert say(image(sigma=25.0)) == "1 image denoised; the noise was 25 of 255."
    assert say(image(sigma=18.2), image(sigma=26.04)) == (
        "2 images denoised; the noise was 18.2 to 26 of 255."
    )
    given = image(sigma=25.0, estimated=False)
    assert say(given, given) == "2 images denoised; the noise was given as 25 of 255."


def test_the_headline_names_what_failed() -> None:
    assert say(failed()) == "The only image could not be denoised: broken.png."
    assert say(failed("a"), failed("b")) == "None of 2 images could be denoised: a and b."
    assert say(image(), failed()).endswith(
        "1 of 2 images denoised, 1 failed: broken.png; the noise was 20 of 255."
    )
    several = [failed(f"{letter}.png") for letter in "abcde"]
    assert "3 failed: a.png, b.png and c.png; the" in say(image(), *several[:3])
    assert "5 failed: a.png, b.png, c.png and 2 more; the" in say(image(), *several)


def test_options_of_one_image_are_reported() -> None:
    assert own_sentence(image()) == ""
    own = {"luma": 0.8, "sigma": None, "noise": "camera"}
    sentence = own_sentence(replace(image(), own_settings=own))
    assert sentence == "Set for this image alone: luma 0.8, sigma auto and noise camera."


def test_images_left_alone_are_not_counted_as_denoised() -> None:
    unchanged = image(sigma=9.0, estimated=True, established=False)
    flat = image(sigma=0.0, estimated=True)
    assert say(image(sigma=18.0), image(sigma=20.0), unchanged, flat, failed()) == (
        "2 of 5 images denoised, 2 left as they were, 1 failed: broken.png; "
        "the noise was 18 to 20 of 255."
    )
    assert say(image(), unchanged).startswith("1 of 2 images denoised, 1 left as it was; the noise")
    assert say(unchanged, unchanged, flat) == (
        "None of 3 images was denoised: no noise could be established."
    )
    assert say(unchanged) == "The image was not denoised: no noise could be established."
    assert say(unchanged, unchanged, failed()) == (
        "None of 3 images was denoised: in 2 no noise could be established, 1 failed: broken.png."
    )
    # With sigma 0, an image counts as denoised if the user gave sigma or the noise is impulses.
    assert say(image(sigma=0.0, estimated=False)).startswith("1 image denoised")
    assert say(image(sigma=0.0, noise="impulse")).startswith("1 image denoised")


def test_noise_of_other_kinds_has_its_own_scale() -> None:
    assert "the noise was 10 to 20 % of the intensity" in say(
        image(sigma=0.1, noise="speckle"), image(sigma=0.2, noise="speckle")
    )
    assert "20 of 255 where brightest" in say(image(noise="poisson"))
    assert "the noise was 20 of 255 and 10 % of the intensity" in say(
        image(), image(sigma=0.1, noise="speckle")
    )
    assert level_text(image(sigma=0.2, noise="speckle")) == "20 % of the intensity"
    assert "impulse noise was removed" in say(image(noise="impulse"))
    # Levels are in the images' units, whatever their ranges; several dtypes are listed separately.
    deep = image(sigma=6553.5, data_range=65535.0, dtype="uint16")
    assert "the noise was 20 of 255 in uint8 and 6,554 of 65,535 in uint16" in say(image(), deep)
    sky = [image(sigma=s, data_range=r, dtype="float32") for s, r in ((4.0, 900.0), (5.0, 700.0))]
    assert "the noise was 4 to 5." in say(*sky)


def test_with_clean_images_the_headline_says_what_was_gained() -> None:
    near = image(comparison=compared(20.0, 30.0, nl_means=28.6, wavelet=27.0))
    assert say(near) == (
        "1 image denoised; PSNR rose from 20.0 to 30.0 dB, 1.4 dB above non-local means."
    )
    behind = image(comparison=compared(20.0, 30.0, nl_means=28.6, wavelet=30.5))
    assert "0.5 dB below wavelet shrinkage" in say(behind)
    equal = image(comparison=compared(20.0, 30.0, wavelet=30.01))
    assert "as much as with wavelet shrinkage" in say(equal)
    assert "PSNR fell from 30.0 to 28.0 dB." in say(image(comparison=compared(30.0, 28.0)))
    assert "PSNR of 1 rose from 20.0 to 30.0 dB on average" in say(near, image())
    # An image equal to its reference has an infinite PSNR, which is not averaged.
    assert "the noise was" in say(image(comparison=compared(math.inf, math.inf)))


def test_names_are_marked_as_not_ours() -> None:
    parts = headline(DenoisingResult((image(), failed("\u202ea.png"))))
    assert [part for part in parts if isinstance(part, Verbatim)] == [r"\u202ea.png"]


def test_baselines_that_are_ahead_are_named() -> None:
    lead = image("lead.png", comparison=compared(20.0, 30.0, nl_means=29.0))
    trail = image("trail.png", comparison=compared(20.0, 27.0, nl_means=29.0))
    (sentence,) = standing_sentences(DenoisingResult((lead, trail)))
    assert "".join(sentence) == (
        "Kernel PCA is 0.50 dB behind non-local means on average; non-local means is ahead on 1: "
        "trail.png."
    )
    (sentence,) = standing_sentences(DenoisingResult((lead, lead)))
    assert "".join(sentence) == (
        "Kernel PCA is 1.00 dB ahead of non-local means on average; non-local means is ahead on no "
        "image."
    )
    (sentence,) = standing_sentences(DenoisingResult((lead,)))
    assert "".join(sentence) == "Kernel PCA is 1.00 dB ahead of non-local means."
    assert standing_sentences(DenoisingResult((image(),))) == []


def test_noise_by_a_law_is_reported_from_dark_to_light() -> None:
    # The image's values end at 80, so the law's noise level at 255 does not occur.
    dark, light = math.sqrt(3.76 * 4 - 12.45), math.sqrt(3.76 * 80 - 12.45)
    assert level_text(counted()) == f"{dark:.3g} to {light:.3g} of 255"
    assert say(counted(), image(sigma=20.0)) == (
        f"2 images denoised; the noise was {dark:.3g} to 20 of 255."
    )
    text = noise_sentence(counted())
    assert "taken as noise of counted light: it is stronger where the image is brighter." in text
    assert "At brightness x its variance is 3.76 x - 12.45;" in text
    assert "in nine of ten such pictures it is 0.90 to 1.10 times that" in text
    assert text.endswith("Noise as strong everywhere is over a million times less likely.")
    colours = counted("a.png", law(), law(3.0, 5.0), law(2.0, 0.001))
    assert "3.76 x - 12.45 in red, 3 x + 5 in green and 2 x in blue" in noise_sentence(colours)
    shared = counted("a.png", law(blur=0.7))
    assert "counted light, shared by neighbours" in noise_sentence(shared)
    assert "as after a blur of 0.7 pixels" in noise_sentence(shared)
    even = counted("a.png", law(0.0, 16.0, blur=0.7, log_odds_flat=0.0))
    assert "taken as noise that neighbours share" in noise_sentence(even)
    assert "its variance is 16, as after" in noise_sentence(even)
    # Noise that was not removed, or may be texture, is not reported as removed.
    doubtful = counted("a.png", law(established=False))
    assert "variance" not in noise_sentence(doubtful)
    assert "of 255 where brightest" in noise_sentence(doubtful)


def test_measuring_and_denoising_report_a_level_alike() -> None:
    counts = counted()
    measured = MeasuredFile(
        "a.png", shape=(8, 8), noise="poisson", sigma=30.8, data_range=255, evidence=counts.evidence
    )
    level = level_text(counts).partition(" of ")[0]
    assert f"  {level}  poisson  " in _noise_lines([measured])[1]


def test_a_law_keeps_the_digits_in_which_its_terms_differ() -> None:
    offset = law(0.5, -4987.6, brightness=(10_000.0, 10_400.0, 10_800.0), variances=(12.0,) * 3)
    gain, constant = (float(part.replace(",", "")) for part in law_text(offset).split(" x - "))
    for brightness in offset.brightness:
        assert gain * brightness - constant == pytest.approx(offset.variance(brightness), rel=0.05)


def test_noise_is_reported_with_its_evidence() -> None:
    assert noise_sentence(image()) == (
        "Noise of 20 of 255, estimated from the image; taken as Gaussian noise."
    )
    assert "as given" in noise_sentence(image(estimated=False))
    assert noise_sentence(image(sigma=0.0)).startswith("No noise, estimated from the image")
    assert "beside the impulses" in noise_sentence(image(noise="impulse"))
    assert noise_sentence(replace(image(), sigma=None)) == "Taken as Gaussian noise."
    assert noise_sentence(image(correlated=True)).endswith(
        "Neighbouring pixels share it, which --noise camera is made for."
    )
    measured = Evidence(sigma_range=(19.0, 22.0), why="it is as strong in the dark")
    assert noise_sentence(image(evidence=measured)) == (
        "Noise of 20 of 255 (in nine of ten such pictures 19 to 22), estimated from the image; "
        "taken as Gaussian noise: it is as strong in the dark."
    )
    assert noise_sentence(image(noise="camera", correlated=True)).endswith(
        "Neighbouring pixels share it."
    )


def test_unchanged_images_have_a_reason_and_an_option() -> None:
    unchanged = image(sigma=4.2, established=False)
    assert noise_sentence(unchanged) == (
        "Left as it is: what was measured (4.2 of 255) may be fine texture; if it is noise, give "
        "its level by --sigma."
    )
    found = Evidence(why="is too faint to distinguish from fine texture", option="--noise poisson")
    assert noise_sentence(replace(unchanged, evidence=found, n_pages=3)) == (
        "At least one of the pages was left as it is: what was measured (4.2 of 255) is too faint "
        "to distinguish from fine texture; --noise poisson takes it out."
    )
    assert noise_sentence(
        image(noise="raw", established=False, evidence=Evidence(why="is too small"))
    ) == ("Left as it is: no noise could be measured, for the image is too small.")


def test_a_batch_summarises_unchanged_images_and_laws() -> None:
    found = Evidence(why="may be fine texture", option="--sigma 4.2")
    alone = [image(f"{letter}.png", 4.2, established=False, evidence=found) for letter in "abcd"]
    (note,) = left_note(DenoisingResult((image(), alone[0])))
    assert note == (
        "a.png: left as it is: what was measured (4.2 of 255) may be fine texture; --sigma 4.2 "
        "takes it out."
    )
    (several,) = left_note(DenoisingResult(tuple(alone)))
    assert several.startswith("4 images were left as they are, for what was measured may be fine")
    assert "--sigma 4.2 takes it out of a.png, " in several
    assert several.endswith("of c.png and the report says what does of each.")
    assert left_note(DenoisingResult((image(), failed()))) == []
    assert law_lines(DenoisingResult((image(),))) == []
    assert law_lines(DenoisingResult((counted(),)))[0] == "Taken as noise of counted light."
    shared = counted("b.png", law(0.5, 2.0, blur=0.7))
    assert law_lines(DenoisingResult((counted(), shared, image()))) == [
        "The noise of 2 of 3 images follows a law of brightness, with a gain of 0.5 to 3.76; "
        "neighbours share it in 1."
    ]


@pytest.mark.parametrize(
    ("residual", "words", "expected"),
    [
        (Residual(18.0, 0.02, 0.01, structured=False), "noise", "as random at edges"),
        (Residual(18.0, 0.02, 0.01, False, 4.3), "noise", "near black, where clipping had bright"),
        (Residual(18.0, 0.02, 0.01, False, -4.3), "noise", "near white, where clipping had dark"),
        (Residual(18.0, 0.40, 0.01, structured=True), "noise and structure", "A --strength below"),
        (Residual(18.0, 0.0, 0.0, structured=False), "too small to tell", "too small to tell"),
        (Residual(0.0, 0.0, 0.0, structured=False), "nothing", "Nothing was removed."),
    ],
)
def test_the_removed_part_is_judged(residual: Residual, words: str, expected: str) -> None:
    sentence = residual_sentence(image(residual=residual))
    assert looks_like(image(residual=residual)) == words
    assert expected in sentence
    assert ("18, beside noise of 20" in sentence) == (residual.sd > 0)


def test_other_scales_are_not_set_beside_the_residual() -> None:
    assert "beside" not in residual_sentence(image(sigma=0.2, noise="speckle"))
    assert residual_sentence(image(residual=None)) == looks_like(image(residual=None)) == ""


def test_a_strength_is_advised_only_where_there_is_one() -> None:
    structured = image(residual=Residual(18.0, 0.4, 0.01, structured=True))
    assert "--strength" not in residual_sentence(structured, has_strength=False)
    batch = replace(with_dictionary(), images=(structured,))
    assert "--strength" not in render_denoising(batch)["report.html"]
    assert "--strength" in render_denoising(replace(batch, dictionary=None))["report.html"]


def test_likeness_without_ssim_and_of_equal_images() -> None:
    assert likeness_sentence(compared(20.0, 30.0, nl_means=28.0)) == (
        "PSNR 20.00 to 30.00 dB, SSIM 0.400 to 0.800 (non-local means 28.00 dB)."
    )
    tiny = Comparison(Quality(20.0, None), Quality(25.0, None))
    assert likeness_sentence(tiny) == "PSNR 20.00 to 25.00 dB."
    assert "is equal to the clean one" in likeness_sentence(compared(20.0, math.inf))
    assert "was equal to the clean one before" in likeness_sentence(compared(math.inf, 40.0))
    assert decibels(math.inf) == "equal"
    page = render_denoising(DenoisingResult((image("a.png", comparison=tiny), image("b.png"))))
    assert "25.00</b> <small></small>" in page["report.html"]


def test_a_dictionary_is_described() -> None:
    dictionary = with_dictionary().dictionary
    assert dictionary is not None
    assert dictionary_sentence(dictionary) == (
        "Learned from 1,200 patches of 8 x 8 pixels. Each is projected on 64 components, with a "
        "bandwidth of 3.25."
    )
    whole = replace(dictionary, patch_size=None, shape=(16, 8, 3), n_examples=1)
    assert "from 1 whole image of 16 x 8 pixels, in colour" in dictionary_sentence(whole)
