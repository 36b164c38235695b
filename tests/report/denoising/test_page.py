import base64
import io
import re
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

from kpca_apps.denoise.batch.denoisers import ExampleDenoiser, GroupDenoiser
from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult, Residual
from kpca_apps.names import visible
from kpca_apps.report.denoising.page import MAX_TOGETHER, render_trial
from kpca_apps.report.denoising.text import headline
from tests.quick import quick
from tests.report import denoising_examples as examples
from tests.report.pages import Page, check_isolated, check_sound, render_denoising


@cache
def pages(name: str) -> dict[str, str]:
    """Render an example once."""
    return render_denoising(examples.BATCHES[name]())


@pytest.mark.parametrize("name", quick(examples.BATCHES, "many", "all_failed", "hostile"))
def test_every_batch_becomes_sound_pages(name: str) -> None:
    result = examples.BATCHES[name]()
    for html in pages(name).values():
        check_sound(html)
    page = Page(pages(name)["report.html"])
    assert " ".join("".join(headline(result)).split()) in " ".join(page.text.split())
    for image in result.failed:
        assert (
            visible(" ".join(image.reason.removeprefix(f"{image.name}: ").split()))[:300]
            in page.text
        )


def test_a_trial_becomes_a_sound_page() -> None:
    result = examples.trial()
    page = check_sound(render_trial(result))
    assert result.command in page.text
    for trial in result.trials:
        assert trial.option in page.text
    assert "Strength 0.75" in page.text and "10 of 255" in page.text
    assert page.text.count("before") == page.text.count("after") == len(result.trials)
    assert "--noise camera" in page.text


def test_an_image_is_shown_whole_in_crops_and_as_residual() -> None:
    result = DenoisingResult((examples.real().images[1],))
    image = result.images[0]
    assert image.previews is not None
    html = render_denoising(result)["report.html"]
    shown = [
        base64.b64decode(picture["src"].partition(",")[2]) for picture in Page(html).all("img")
    ]
    previews = image.previews
    expected = [previews.before, previews.after, previews.residual]
    for crop in previews.crops:
        assert crop.reference is not None
        expected += [crop.before, crop.after, crop.reference]
    assert shown == [picture.data for picture in expected]
    for data, picture in zip(shown, expected, strict=True):
        with Image.open(io.BytesIO(data)) as opened:
            assert opened.size == (picture.width, picture.height)


def test_failures_come_before_anything_that_went_well() -> None:
    html = pages("real")["report.html"]
    assert html.index('id="failed"') < html.index("<img")
    assert html.index('id="failed"') < html.index("<table")


def test_links_lead_to_the_files_written() -> None:
    prefix = "../images/"
    for name in ("real", "hostile"):
        result = examples.BATCHES[name]()
        links = {link["href"] for link in Page(pages(name)["report.html"]).all("a")}
        files = {unquote(link.removeprefix(prefix)) for link in links if link.startswith(prefix)}
        assert files == {image.output for image in result.images if image.output}


@pytest.mark.release
def test_a_large_batch_has_a_page_for_each_image() -> None:
    found = render_denoising(examples.many(500))
    assert list(found) == ["report.html", *(f"details/{n:04d}.html" for n in range(1, 501))]
    overview = Page(found["report.html"])
    assert len(found["report.html"]) < 4_000_000
    links = [link["href"] for link in overview.all("a")]
    assert {link for link in links if link.startswith("details/")} == set(found) - {"report.html"}
    lazy = [picture for picture in overview.all("img") if picture.get("loading") == "lazy"]
    assert len(lazy) == 500
    around = [link["href"] for link in Page(found["details/0007.html"]).all("a")]
    assert around[:3] == ["../report.html", "../details/0006.html", "../details/0008.html"]
    assert "../../images/roll%206/006.png" in around
    assert "12 more under" in overview.text


def test_a_page_holds_no_more_than_opens_fast() -> None:
    few = tuple(examples.image(f"{n}.png") for n in range(MAX_TOGETHER))
    assert list(render_denoising(DenoisingResult(few))) == ["report.html"]
    usual = examples.previews()
    bulky = replace(usual, before=replace(usual.before, data=bytes(4_000_000)))
    large = tuple(examples.image(f"{n}.png", previews=bulky) for n in range(2))
    assert len(render_denoising(DenoisingResult(large))) == 3


def test_hostile_names_stay_text() -> None:
    for html in pages("hostile").values():
        assert "<script>alert" not in html and "{{7*7}}" in html
        check_isolated(html)


def test_times_and_what_was_resumed_do_not_reach_the_page() -> None:
    result = examples.real()
    later = replace(
        result,
        seconds=98765.0,
        images=tuple(replace(image, seconds=98765.0, resumed=True) for image in result.images),
    )
    assert render_denoising(later) == pages("real")


def test_tables_hold_every_method_and_the_mean() -> None:
    page = Page(pages("real")["report.html"])
    for name in ("noisy", "kernel PCA", "non-local means", "wavelet shrinkage", "mean of 6"):
        assert name in page.text
    mean = examples.real().mean_comparison
    assert mean is not None
    for quality in (mean.noisy, mean.denoised, *mean.baselines.values()):
        assert f"{quality.psnr:.2f}" in page.text and f"{quality.ssim:.3f}" in page.text


def test_a_dictionary_is_shown_by_its_components() -> None:
    page = Page(pages("with_dictionary")["report.html"])
    labels = [picture["alt"] for picture in page.all("img")]
    for number in (1, 2, 3):
        assert f"below the mean along component {number}" in labels
        assert f"above the mean along component {number}" in labels
    assert "Both were chosen by the error on held-out examples." in page.text


def test_settings_are_described_in_words() -> None:
    settings = {"mode": "local", "compare": ["nl_means", "wavelet"], "sigma": None}
    page = Page(render_denoising(replace(examples.real(), settings=settings))["report.html"])
    for words in (
        "local, from similar patches within each image",
        "non-local means and wavelet shrinkage",
        "measured on each image",
    ):
        assert words in page.text


@pytest.mark.parametrize(
    ("denoiser", "words"),
    [
        (GroupDenoiser(Options(method="linear")), "Method: linear. .* that is their principal"),
        (GroupDenoiser(Options()), "Method: rbf. .* at print .* fixed point .* Tikhonov filter"),
        (GroupDenoiser(Options(method="mika")), "Method: mika. .* once: .*Mika et al. 1998"),
        (ExampleDenoiser(DictionaryDenoiser(), ""), "Method: mika, with a dictionary."),
    ],
)
def test_the_method_that_was_used_is_named(denoiser: Any, words: str) -> None:
    settings = denoiser.settings
    assert settings["method"] in words
    page = Page(render_denoising(replace(examples.real(), settings=settings))["report.html"])
    assert re.search(words, page.text)
    assert ("Tikhonov" in page.text) == ("mika" not in words)


def test_an_image_left_alone_shows_no_level_as_noise_and_is_not_the_least_changed() -> None:
    unchanged = examples.image(
        "left.png", 3.22, established=False, residual=Residual(0.0, 0.0, 0.0, structured=False)
    )
    salt = examples.image("salt.png", 7.0, impulses=True)
    result = DenoisingResult((unchanged, examples.image("much.png", 30.0), salt))
    first = render_denoising(result)["report.html"]
    table = first[first.index('<table class="stacked batch"') :]
    rows = {
        name: re.findall(r"<td[^>]*>(.*?)</td>", row)
        for row in table.split("<tr>")[2:]
        for name in re.findall(r"<bdi>(.*?)</bdi>", row)[:1]
    }
    assert {"3.22 of 255 ?", "left as it was"} < set(rows["left.png"])
    assert {"7 of 255", "noise; impulses"} < set(rows["salt.png"])
    assert "?: no noise could be established" in table
    extremes = re.findall(r"<h2>(Changed \w+): <a[^>]*><bdi>(.*?)</bdi>", first)
    assert extremes == [("Changed most", "much.png"), ("Changed least", "salt.png")]


def test_images_are_ranked_by_how_much_of_their_own_range_was_removed() -> None:
    twelve_bits = examples.image(
        "twelve.tif",
        dtype="uint16",
        sigma=400.0,
        data_range=65535.0,
        used_range=4000.0,
        residual=Residual(400.0, 0.0, 0.0, structured=False),
    )
    others = [examples.image(f"{sigma}.png", sigma, used_range=250.0) for sigma in (5.0, 10.0)]
    first = render_denoising(DenoisingResult((twelve_bits, *others)))["report.html"]
    extremes = re.findall(r"<h2>(Changed \w+): <a[^>]*><bdi>(.*?)</bdi>", first)
    assert extremes == [("Changed most", "twelve.tif"), ("Changed least", "5.0.png")]


def test_a_law_is_drawn_beside_its_image() -> None:
    page = check_sound(
        render_denoising(DenoisingResult((examples.counted(), examples.image())))["report.html"]
    )
    labels = [values.get("aria-label", "") for tag, values in page.elements if tag == "svg"]
    assert sum(label.startswith("Noise over brightness. ") for label in labels) == 1
    assert "Noise over brightness" in page.text


def test_a_large_batch_names_the_pages_with_a_law() -> None:
    images = [examples.image(f"{n}.png") for n in range(MAX_TOGETHER)]
    found = render_denoising(DenoisingResult((*images, examples.counted("cells.tif"))))
    assert "Noise over brightness is drawn on the pages of" in found["report.html"]
    assert "Noise over brightness" in found["details/0013.html"]
    assert "Noise over brightness" not in found["details/0012.html"]
    for html in found.values():
        check_sound(html)
