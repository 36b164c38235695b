import json
from dataclasses import replace
from typing import Any

import pytest

from kpca_apps.denoise.batch.per_image import COLUMNS
from kpca_apps.denoise.batch.trial import strengths_of
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult, Evidence, ImageOutcome
from kpca_apps.report.denoising.redo import OPTIONS, can_redo, redo_marks_of, redo_of, strength_of
from tests.report import denoising_examples as examples
from tests.report.pages import check_sound, render_denoising


def about(image: ImageOutcome, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = redo_of(DenoisingResult((image,), settings))["images"][1]
    return found


def test_all_that_the_batch_takes_for_one_image_is_offered() -> None:
    assert set(OPTIONS) == set(COLUMNS)
    offered = redo_of(examples.many(1))["offered"]
    for noise in offered["noise"]:
        Options(noise=noise)
    for quality in offered["quality"]:
        Options(quality=quality)
    for noise in DenoisingResult((), {"stack": True}).offered["noise"]:
        Options(noise=noise, pages=2)


@pytest.mark.parametrize("colour", [True, False])
def test_weaker_and_stronger_are_those_of_a_preview(colour: bool) -> None:
    image = examples.image(shape=(40, 60, 3) if colour else (40, 60), own_settings={"luma": 0.8})
    options = Options(strength=0.9, luma=0.8, chroma=1.1)
    (_, _, weaker), _, (_, _, stronger) = strengths_of(options, colour=colour)
    found = about(image, strength=0.9, luma=2.0, chroma=1.1)["presets"]
    assert found["weaker"] == {"strength": weaker.strength}
    chroma = {"chroma": stronger.chroma} if colour else {}
    assert found["stronger"] == {"luma": stronger.luma, **chroma}


def test_impossible_options_are_not_offered() -> None:
    grey, colour = examples.image(), examples.image(shape=(40, 60, 4))
    raw = examples.image(noise="raw", format="tiff", shape=(40, 60, 3))
    assert set(OPTIONS) - set(about(grey)["options"]) == {"chroma"}
    assert set(about(colour)["options"]) == set(OPTIONS)
    assert set(OPTIONS) - set(about(raw)["options"]) == {"sigma", "noise"}
    assert "high quality" in about(grey, quality="fast")["presets"]
    assert "high quality" not in about(grey, quality="high")["presets"]
    own = replace(grey, own_settings={"quality": "high"})
    assert "high quality" not in about(own, quality="fast")["presets"]
    assert can_redo(examples.many(1)) and not can_redo(examples.with_dictionary())
    assert not can_redo(DenoisingResult((grey,), {"mode": "dictionary"}))


def test_an_unchanged_image_is_denoised_by_the_suggested_option() -> None:
    unchanged = examples.image(established=False, evidence=Evidence(option="--sigma 4.2"))
    assert about(unchanged)["presets"] == {"denoise it": {"sigma": 4.2}}
    camera = replace(unchanged, evidence=Evidence(option="--noise camera"))
    assert about(camera)["presets"] == {"denoise it": {"noise": "camera"}}
    assert about(replace(unchanged, evidence=Evidence()))["presets"] == {}
    result = DenoisingResult((unchanged,), {"strength": 0.7})
    assert strength_of(unchanged, result) == 0
    assert strength_of(examples.image(), result) == 0.7
    assert strength_of(examples.image(own_settings={"strength": 0.4}), result) == 0.4


def test_a_page_holds_own_options_of_images() -> None:
    own = examples.image("own </script>", own_settings={"strength": 0.8, "sigma": None})
    result = DenoisingResult((examples.image(), own), {"quality": "fast"})
    page = check_sound(render_denoising(result)["report.html"])
    marks = json.loads(page.blocks["marks"])
    assert marks == redo_marks_of(result)
    assert marks["marks"] == [{"file": "own </script>", "strength": 0.8, "sigma": "auto"}]
    assert json.loads(page.blocks["redo"])["images"]["2"]["file"] == "own </script>"
