"""The sentences on what denoising did."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kpca_apps.denoise.result import Comparison, DenoisingResult, ImageOutcome, Quality, Residual
from kpca_apps.report.denoising.text import (
    best_baseline,
    decibels,
    dictionary_sentence,
    headline,
    headline_parts,
    level_text,
    likeness_sentence,
    looks_like,
    noise_sentence,
    own_sentence,
    reason_text,
    residual_sentence,
    standing_sentences,
)
from kpca_apps.report.text import Verbatim
from tests.report.denoising_examples import compared, failed, image, with_dictionary
from tests.report.pages import render_denoising


def say(*images: ImageOutcome) -> str:
    return headline(DenoisingResult(images))


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


def test_what_was_asked_for_one_image_is_said() -> None:
    assert own_sentence(image()) == ""
    own = {"luma": 0.8, "sigma": None, "noise": "camera"}
    told = own_sentence(replace(image(), own_settings=own))
    assert told == "Asked for this image alone: luma 0.8, sigma auto and noise camera."


def test_images_left_alone_are_not_counted_as_denoised() -> None:
    left = image(sigma=9.0, estimated=True, established=False)
    flat = image(sigma=0.0, estimated=True)
    assert say(image(sigma=18.0), image(sigma=20.0), left, flat, failed()) == (
        "2 of 5 images denoised, 2 left as they were, 1 failed: broken.png; "
        "the noise was 18 to 20 of 255."
    )
    assert say(image(), left).startswith("1 of 2 images denoised, 1 left as it was; the noise")
    assert say(left, left, flat) == (
        "None of 3 images was denoised: no noise could be established."
    )
    assert say(left) == "The image was not denoised: no noise could be established."
    assert say(left, left, failed()) == (
        "None of 3 images was denoised: in 2 no noise could be established, 1 failed: broken.png."
    )
    # A level that was given is taken at its word, as is noise of impulses.
    assert say(image(sigma=0.0, estimated=False)).startswith("1 image denoised")
    assert say(image(sigma=0.0, noise="impulse")).startswith("1 image denoised")


def test_noise_of_other_kinds_has_its_own_scale() -> None:
    assert "the noise was 10 to 20 % of the intensity" in say(
        image(sigma=0.1, noise="speckle"), image(sigma=0.2, noise="speckle")
    )
    assert "20 of 255 where brightest" in say(image(noise="poisson"))
    assert "impulse noise was removed" in say(image(noise="impulse"))
    # Images of several ranges have only shares in common.
    deep = image(sigma=6553.5, data_range=65535.0)
    assert "the noise was 7.8 to 10 % of the range of values" in say(image(), deep)


def test_with_clean_images_the_headline_says_what_was_gained() -> None:
    near = image(comparison=compared(20.0, 30.0, nl_means=28.6, wavelet=27.0))
    assert say(near) == (
        "1 image denoised; PSNR rose from 20.0 to 30.0 dB, 1.4 dB above non-local means."
    )
    behind = image(comparison=compared(20.0, 30.0, nl_means=28.6, wavelet=30.5))
    assert "0.5 dB below wavelet shrinkage" in say(behind)
    equal = image(comparison=compared(20.0, 30.0, wavelet=30.01))
    assert "as much as with wavelet shrinkage" in say(equal)
    worse = image(comparison=compared(30.0, 28.0))
    assert "PSNR fell from 30.0 to 28.0 dB." in say(worse)
    assert "PSNR of 1 rose from 20.0 to 30.0 dB on average" in say(near, image())
    # An image equal to its reference has no ratio to average.
    assert "the noise was" in say(image(comparison=compared(math.inf, math.inf)))


def test_names_are_marked_as_not_ours() -> None:
    parts = headline_parts(DenoisingResult((image(), failed("\u202ea.png"))))
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


def test_the_best_baseline_is_a_finite_one() -> None:
    comparison = compared(20.0, 30.0, nl_means=28.0, wavelet=29.0)
    assert best_baseline(comparison) == "wavelet"
    assert best_baseline(compared(20.0, 30.0, nl_means=math.inf)) is None


def test_levels_stand_on_their_scale() -> None:
    assert level_text(image(), 24.84) == "24.8 of 255"
    assert level_text(image(data_range=1.0), 0.0981) == "0.0981 of 1"
    assert level_text(image(data_range=65535.0), 3290.4) == "3,290 of 65,535"
    assert level_text(image(noise="poisson"), 12.0) == "12 of 255 where brightest"
    assert level_text(image(noise="speckle"), 0.2) == "20 % of the intensity"


def test_noise_is_told_with_how_it_is_known() -> None:
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
    left = noise_sentence(image(estimated=True, established=False))
    assert left.startswith("No noise could be established: ")
    assert left.endswith("the image was left as it was.")
    assert noise_sentence(image(noise="camera", correlated=True)).endswith(
        "Neighbouring pixels share it."
    )


@pytest.mark.parametrize(
    ("residual", "words", "expected"),
    [
        (Residual(18.0, 0.02, 0.01, structured=False), "noise", "no structure was found in it"),
        (Residual(18.0, 0.40, 0.01, structured=True), "noise and structure", "A --strength below"),
        (Residual(18.0, 0.0, 0.0, structured=False), "too small to tell", "too small to tell"),
        (Residual(0.0, 0.0, 0.0, structured=False), "nothing", "Nothing was removed."),
    ],
)
def test_what_was_taken_out_is_judged(residual: Residual, words: str, expected: str) -> None:
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
    with_one = with_dictionary()
    batch = replace(with_one, images=(structured,))
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


def test_a_reason_stands_without_the_name_before_it() -> None:
    assert reason_text(failed("a.png", "is empty.")) == "is empty."
    assert reason_text(ImageOutcome("a.png", "failed")) == "no reason was given"


def test_a_dictionary_is_described() -> None:
    dictionary = with_dictionary().dictionary
    assert dictionary is not None
    assert dictionary_sentence(dictionary) == (
        "Learned from 1,200 patches of 8 x 8 pixels. Each is projected on 64 components, with a "
        "bandwidth of 3.25."
    )
    whole = replace(dictionary, patch_size=None, shape=(16, 8, 3), n_examples=1)
    assert "from 1 whole image of 16 x 8 pixels, in colour" in dictionary_sentence(whole)
