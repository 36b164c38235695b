"""Mark images of a batch page for another run, in a real browser and then in the command."""

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage import data

from kpca_apps import denoise_kpca
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.per_image import read_per_image
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult, Evidence, Residual
from kpca_apps.report.denoising.page import render_trial
from tests.report import denoising_examples as examples
from tests.report.pages import render_denoising
from tests.report.worked import saved

pytestmark = [pytest.mark.browser, pytest.mark.release]

Opened = Callable[..., Any]
NAMES = ("=1+1,a.png", examples.HOSTILE, "c.png", "left.png", "own.png")
RGB = (40, 60, 3)
NOISE = Residual(0.0, 0.0, 0.0, structured=False)


def batch() -> DenoisingResult:
    """Return a batch of five images: one is left unchanged, one has its own options."""
    doubtful = Evidence(why="may be fine texture", option="--sigma 4.2")
    colour = examples.previews(1, RGB)
    images = (
        examples.image(NAMES[0], 10.0, residual=replace(NOISE, sd=9.0)),
        examples.image(NAMES[1], 30.0, residual=replace(NOISE, sd=8.0), shape=RGB, previews=colour),
        examples.image(NAMES[2], 20.0, residual=replace(NOISE, sd=18.0)),
        examples.image(NAMES[3], 4.2, established=False, evidence=doubtful, residual=NOISE),
        examples.image(
            NAMES[4], own_settings={"strength": 0.8, "sigma": None}, residual=replace(NOISE, sd=1.0)
        ),
    )
    return DenoisingResult(images, {"quality": "balanced", "noise": "auto", "luma": 1.2})


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def asked_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the options the batch reads from a table for ``--per-image``."""
    found = read_per_image(path, NAMES, GroupDenoiser(Options(luma=1.2)))
    return {name: dict(own) for name, own in found.items()}


def with_chroma(before: Any, after: Any, chroma: float) -> Any:
    """Return `after` with the change of colour, not of grey, multiplied by `chroma` squared."""
    off = after.astype(float) - before
    grey = off.mean(axis=2, keepdims=True)
    return np.clip(before + grey + chroma**2 * (off - grey), 0, 255)


def test_marks_made_by_keys_are_saved_reopened_and_read_by_the_batch(
    opened: Opened, tmp_path: Path
) -> None:
    page = opened(render_denoising(batch())["report.html"])
    assert page.locator(".workbar").inner_text().startswith("No image is marked")
    press(page, "j", "w", "c")
    page.keyboard.type("=too soft; see </script>, the eyes")
    press(page, "Escape", "j", "s", "h", "j", "r")
    page.keyboard.type("0.5")
    press(page, "Escape", "w", "u", "j", "d", "w", "h")
    assert page.locator(".workbar").inner_text().startswith("4 images marked, not saved")
    again = saved(page, "Save page with marks", tmp_path)
    assert again.name == "report-marked.html"
    policy = 'http-equiv="Content-Security-Policy"'
    before, after = ((tmp_path / name).read_text() for name in ("report.html", again.name))
    assert [line for line in before.splitlines() if policy in line] == [
        line for line in after.splitlines() if policy in line
    ]
    reopened = opened(again)
    assert reopened.locator(".workbar").inner_text().startswith("4 images marked")
    assert "not saved" not in reopened.locator(".workbar").inner_text()
    table = saved(reopened, "per-image.csv", tmp_path)
    assert "--per-image per-image.csv --force" in reopened.locator(".status").inner_text()
    assert asked_of(table) == {
        NAMES[0]: {"strength": 0.6},
        NAMES[1]: {"luma": 1.56, "chroma": 1.3, "quality": "high"},
        NAMES[2]: {"strength": 0.5},
        NAMES[3]: {"sigma": 4.2},
        # This image keeps the options that were set for it alone.
        NAMES[4]: {"strength": 0.8, "sigma": None},
    }
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["file"]: row["note"] for row in csv.DictReader(file)}
    assert rows[f"'{NAMES[0]}"] == "'=too soft; see </script>, the eyes"


def test_every_option_of_an_image_can_be_requested(opened: Opened, tmp_path: Path) -> None:
    page = opened(render_denoising(batch())["report.html"])
    colour = page.locator("article.image").nth(1)
    colour.get_by_role("button", name="options").click()
    for name, value in (("luma", "1.5"), ("chroma", "2"), ("sigma", "auto")):
        colour.locator(".options").get_by_label(name, exact=True).fill(value)
        colour.locator(".options").get_by_label(name, exact=True).press("Tab")
    colour.get_by_role("combobox", name="noise").select_option("camera")
    colour.get_by_role("combobox", name="quality").select_option("draft")
    strength = colour.locator(".options").get_by_label("strength")
    strength.press("ArrowDown")
    strength.press("ArrowDown")
    assert strength.input_value() == "0.9"
    grey = page.locator("article.image").nth(2)
    grey.get_by_role("button", name="options").click()
    assert grey.get_by_label("chroma").count() == 0
    grey.locator(".options").get_by_label("strength").fill("7")
    grey.locator(".options").get_by_label("strength").press("Tab")
    assert page.locator(".status").inner_text().startswith("strength: ")
    found = asked_of(saved(page, "per-image.csv", tmp_path))
    assert found[NAMES[1]] == {
        "strength": 0.9, "luma": 1.5, "chroma": 2.0, "sigma": None, "noise": "camera",
        "quality": "draft",
    }  # fmt: skip
    assert set(found) == {NAMES[1], NAMES[4]}


def test_images_of_a_large_batch_are_marked_in_the_list(opened: Opened, tmp_path: Path) -> None:
    names = [image.name for image in examples.many(30).done]
    page = opened(render_denoising(examples.many(30))["report.html"])
    page.get_by_role("button", name="removed").click()
    page.get_by_role("button", name="removed").click()
    press(page, "j", "w", "j", "j", "h", "c")
    page.keyboard.type("dark")
    press(page, "Escape", "ArrowUp", "s")
    link = page.get_by_role("link", name=names[0], exact=True).last
    assert link.get_attribute("target") == "_blank"
    page.get_by_label("Filter").last.fill("029")
    press(page, "Escape")
    assert page.locator("table.batch tbody tr:visible").count() == 1
    found = read_per_image(saved(page, "per-image.csv", tmp_path), names, GroupDenoiser(Options()))
    assert {name: dict(own) for name, own in found.items()} == {
        names[29]: {"strength": 0.6},
        names[27]: {"quality": "high"},
        names[28]: {"luma": 1.3},
    }
    # Marked rows can be sorted to the top.
    page.get_by_label("Filter").last.fill("")
    page.get_by_role("button", name="redo with", exact=True).click()
    rows = page.locator("table.batch tbody tr")
    marked = "all => all.map(row => row.hasAttribute('data-redo'))"
    assert rows.evaluate_all(marked) == [True] * 3 + [False] * 27


def test_images_without_own_options_cannot_be_marked(opened: Opened) -> None:
    page = opened(render_denoising(examples.with_dictionary())["report.html"])
    assert page.locator(".workbar, .redo, #redo, #marks").count() == 0
    assert page.get_by_label("strength").count() == 0
    assert page.locator(".views .viewer").count() == 2


def test_images_are_ordered_by_change_or_level(opened: Opened) -> None:
    page = opened(render_denoising(batch())["report.html"])
    names = page.locator("article.image > h2")
    first = names.all_inner_texts()
    choice = page.get_by_label("Images by")
    choice.select_option("taken")
    assert names.all_inner_texts() == [first[n] for n in (2, 0, 1, 4, 3)]
    choice.select_option("level")
    assert names.all_inner_texts() == [first[n] for n in (1, 2, 4, 0, 3)]
    choice.select_option("")
    assert names.all_inner_texts() == first


def places(page: Any, inside: str = ".views") -> list[tuple[float, float, float]]:
    """Return zoom and centre (in pixels) of each image in the first element found by `inside`."""
    middle = """all => all.map(one => {
        const m = new DOMMatrix(getComputedStyle(one).transform), box = one.closest(".frame");
        const shown = m.a * one.clientWidth / one.naturalWidth;
        return [shown, (box.clientWidth / 2 - m.e) / shown, (box.clientHeight / 2 - m.f) / shown];
    })"""
    found = page.locator(inside).first.locator(".frame img:last-child").evaluate_all(middle)
    return [tuple(entry) for entry in found]


def test_before_after_and_residual_share_position_and_zoom(opened: Opened) -> None:
    page = opened(render_denoising(examples.many(30))["details/0003.html"])
    view = page.locator(".views")
    for name, scale in (("2:1", 2), ("1:1", 1), ("4:1", 4)):
        view.get_by_role("button", name=name).click()
        for shown, x, y in places(page):
            assert (shown, x, y) == pytest.approx((scale, 30, 20), abs=0.05)
    press(page, "0")
    fitted = places(page)
    assert view.get_by_role("button", name="fit").get_attribute("aria-pressed") == "true"
    press(page, "+", "+", "+", "Shift+ArrowRight", "Shift+ArrowUp")
    first, *others = places(page)
    assert first[0] == pytest.approx(fitted[0][0] * 2**1.5, rel=1e-4)
    assert first[1] > 31 and first[2] < 19
    for other in others:
        assert other == pytest.approx(first, abs=0.5)
    # The picture stays in its frame.
    press(page, *["Shift+ArrowRight"] * 20)
    box = view.locator(".over .frame").bounding_box()
    edge = places(page)[0]
    assert edge[1] + box["width"] / 2 / edge[0] == pytest.approx(60, abs=0.05)
    # Arrow keys without Shift still move the line between before and after.
    line = view.locator(".stage input")
    line.focus()
    press(page, "ArrowRight")
    assert line.input_value() == "51"
    assert places(page)[0] == pytest.approx(edge)


def test_the_pointer_drags_the_picture_or_the_line_and_zooms_with_the_wheel(opened: Opened) -> None:
    page = opened(render_denoising(examples.many(30))["details/0003.html"])
    box = page.locator(".over .frame").bounding_box()
    x, y = box["x"] + 0.25 * box["width"], box["y"] + 0.25 * box["height"]
    page.mouse.move(x, y)
    page.mouse.wheel(0, -100)
    fitted = places(page)[0]
    page.keyboard.down("Control")
    page.mouse.wheel(0, -250)
    page.keyboard.up("Control")
    page.wait_for_function("document.querySelector('.magnified')")
    shown, middle, _ = places(page)[0]
    assert shown == pytest.approx(2 * fitted[0], rel=0.01)
    # The point under the pointer, at a quarter of the picture's width, stays there.
    assert middle - 0.25 * box["width"] / shown == pytest.approx(15, abs=0.1)
    box = page.locator(".over .frame").bounding_box()
    x, y = box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y, steps=3)
    page.mouse.up()
    assert places(page)[0][1] == pytest.approx(middle + 40 / shown, abs=0.1)
    line = page.locator(".stage input")
    assert line.input_value() == "50"
    page.mouse.move(box["x"] + 0.5 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=3)
    page.mouse.up()
    assert float(line.input_value()) == pytest.approx(80, abs=1)


def test_the_pictures_of_a_trial_move_together(opened: Opened) -> None:
    page = opened(render_trial(examples.trial()))
    page.get_by_role("button", name="2:1").click()
    press(page, "+", "+", "+", "+", "Shift+ArrowLeft")
    first, *others = places(page, ".trials")
    assert len(others) == 8
    for other in others:
        assert other == pytest.approx(first, abs=0.6)


def test_a_weaker_result_is_previewed_and_can_be_requested(opened: Opened, tmp_path: Path) -> None:
    page = opened(render_denoising(batch())["report.html"])
    own = page.locator("article.image").nth(4)
    slider = own.locator(".viewer input")
    assert (slider.get_attribute("max"), slider.input_value()) == ("0.8", "0.8")
    slider.fill("0.6")
    opacity = "all => all.map(one => getComputedStyle(one).opacity)"
    # The result covers the original picture with an opacity of 0.75.
    assert own.locator(".over img").evaluate_all(opacity) == ["1", "0.75"]
    assert own.locator(".residual img").evaluate_all(opacity) == ["0.75"]
    sources = own.locator(".over img:first-child, .under img").evaluate_all(
        "all => new Set(all.map(one => one.src)).size"
    )
    assert sources == 1
    assert "0.6, a preview" in own.locator("output").inner_text()
    own.get_by_role("button", name="Redo with this strength").click()
    assert asked_of(saved(page, "per-image.csv", tmp_path)) == {
        NAMES[4]: {"strength": 0.6, "sigma": None}
    }
    # No noise was removed from this image, so its viewer has no slider for the strength.
    assert page.locator("article.image").nth(3).locator(".viewer input").count() == 0


def test_less_smoothed_colours_are_previewed_and_can_be_requested(
    opened: Opened, tmp_path: Path
) -> None:
    page = opened(render_denoising(batch())["report.html"])
    own = page.locator("article.image").nth(1)
    chroma = own.locator(".viewer input").nth(1)
    assert (chroma.get_attribute("max"), chroma.input_value()) == ("1", "1")
    chroma.fill("0.5")
    assert "0.5, a preview" in own.locator("output").nth(1).inner_text()
    own.locator(".viewer input").first.fill("0.7")
    # Read the pixels of the previews, and those of the pictures as the browser decodes them.
    pixels = """all => all.map(one => {
        const canvas = document.createElement("canvas");
        Object.assign(canvas, { width: 60, height: 40 });
        const pen = canvas.getContext("2d");
        pen.drawImage(one, 0, 0, 60, 40);
        return [...pen.getImageData(0, 0, 60, 40).data];
    })"""
    pictures = own.locator(".under img, .over img:last-child, .over canvas").evaluate_all(pixels)
    before, shown, after = (np.array(pixels).reshape(40, 60, 4)[..., :3] for pixels in pictures)
    assert np.abs(shown - with_chroma(before, after, 0.5)).max() <= 0.51
    opacity = "all => all.map(one => getComputedStyle(one).opacity)"
    assert own.locator(".over canvas").evaluate_all(opacity) == ["0.7"]
    own.get_by_role("button", name="Redo with these").click()
    found = asked_of(saved(page, "per-image.csv", tmp_path))
    assert found[NAMES[1]] == {"strength": 0.7, "chroma": 0.5}
    # The slider's end is the batch's own `chroma`, so the report needs no canvas with a preview.
    chroma.press("End")
    assert own.locator("canvas").count() == 0
    assert page.locator("article.image").first.locator(".viewer input").count() == 1


@pytest.mark.parametrize("chroma", [0.0, 0.3, 0.5, 0.75])
def test_a_preview_resembles_the_options_result(chroma: float) -> None:
    clean = data.coffee()[100:196, 200:296]
    noise = np.random.default_rng(0).normal(scale=20, size=clean.shape)
    noisy = np.clip(clean + noise, 0, 255).round().astype(np.uint8)
    denoise = partial(denoise_kpca, noisy, sigma=20, channel_axis=-1, quality="draft")
    denoised = denoise()
    found, previewed = denoise(chroma=chroma), with_chroma(noisy, denoised, chroma)
    removed = np.std(noisy - found)
    assert np.std(previewed - found) < 0.3 * removed
    # The preview is closer to the result than the picture already in the report.
    assert np.std(previewed - found) < 0.7 * np.std(denoised - found)


def test_reduced_pictures_say_so(opened: Opened) -> None:
    large = examples.image("large.png", shape=(400, 600))
    page = opened(render_denoising(DenoisingResult((large, examples.image())))["report.html"])
    words = page.locator(".viewer").all_inner_texts()
    assert "of pictures at 10 % of the size of the image" in words[0]
    assert "of pictures" not in words[1]


@pytest.mark.parametrize("width", [1280, 390])
def test_no_word_of_the_list_is_broken(opened: Opened, width: int) -> None:
    long = "a" * 70 + ".png"
    images = tuple(examples.image(f"{n} {long}", shape=(4000, 6000, 3)) for n in range(14))
    page = opened(render_denoising(DenoisingResult(images))["report.html"])
    page.set_viewport_size({"width": width, "height": 800})
    links = page.locator("table.batch td.file a")
    assert links.count() == 14
    for rectangles in links.evaluate_all("all => all.map(one => one.getClientRects().length)"):
        assert rectangles == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_script_and_on_paper_nothing_changes(opened: Opened) -> None:
    page = opened(render_denoising(batch())["report.html"], java_script_enabled=False)
    assert page.locator("button, input, select").count() == 0
    assert page.locator(".stage img:visible").count() == 2 * len(NAMES)
    page = opened(render_denoising(batch())["report.html"])
    press(page, "j", "w", "r", "Escape", "4")
    page.locator("article .viewer input").first.fill("0.3")
    page.emulate_media(media="print")
    assert page.locator(".over img:visible").first.evaluate(
        "one => [getComputedStyle(one).transform, getComputedStyle(one).opacity]"
    ) == ["none", "1"]
    for part in (".workbar", ".viewer", ".redo", ".options", "select"):
        assert not page.locator(part).first.is_visible()
