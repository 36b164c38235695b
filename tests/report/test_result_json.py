import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.report.denoising.text import headline
from kpca_apps.report.result_json import result_to_json
from kpca_apps.report.text import writable
from tests.novelty.tables import changed
from tests.report import denoising_examples, examples


@pytest.mark.parametrize("make", examples.SCREENINGS.values(), ids=examples.SCREENINGS.keys())
def test_every_result_becomes_json(make: examples.Make) -> None:
    result = make()
    text = result_to_json(result)
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    assert text.encode() and text == result_to_json(make())
    assert list(content) == sorted(content)
    assert (content["n_rows"], content["n_flagged"]) == (len(result.rows.scores), result.n_flagged)
    assert not {"pictures", "map"} & set(content)
    assert [*content["rows"]] == ["scale"]
    assert set(content["components"]) == {"variances", "gains", "explained"}


def test_numbers_are_exact_and_infinity_has_a_name() -> None:
    result = examples.infinite_threshold()
    result = changed(result, settings={"gamma": float("nan"), "share": 0.1})
    content = json.loads(result_to_json(result))
    assert content["threshold"]["value"] == "inf"
    assert content["run"]["settings"] == {"gamma": None, "share": 0.1}
    top = result.ranked[0]
    assert content["ranked"][0]["score"] == top.score
    assert top.rarity is not None
    assert content["ranked"][0]["rarity"] == {"share": top.rarity.share, "words": top.rarity.words}
    assert content["rows"]["scale"]["name"] == "how rare"


def test_hidden_values_and_timings_stay_out() -> None:
    hidden = result_to_json(examples.hidden())
    assert "1950" not in hidden and "N262A1" not in hidden
    assert "seconds" not in result_to_json(examples.with_labels())


@pytest.mark.parametrize(
    "make", denoising_examples.BATCHES.values(), ids=denoising_examples.BATCHES
)
def test_every_batch_becomes_json(make: Callable[[], DenoisingResult]) -> None:
    result = make()
    text = result_to_json(result)
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    assert list(content) == sorted(content) and content["kind"] == "denoising"
    assert content["sentence"] == writable("".join(headline(result)))
    assert content["n_images"] == len(result.images) and content["n_failed"] == result.n_failed
    for image in content["images"]:
        assert not {"previews", "seconds", "resumed"} & set(image)
    assert len(text) < 4000 * (1 + len(result.images))


def test_a_batch_gives_the_same_json_however_long_it_took() -> None:
    result = denoising_examples.real()
    resumed = tuple(replace(image, seconds=1e9, resumed=True) for image in result.images)
    assert result_to_json(replace(result, images=resumed, seconds=1e9)) == result_to_json(result)


def test_pictures_of_components_and_trials_stay_out() -> None:
    content = json.loads(result_to_json(denoising_examples.with_dictionary()))
    assert content["dictionary"]["components"][0] == {"number": 1, "share": 0.5}
    content = json.loads(result_to_json(denoising_examples.trial()))
    assert content["kind"] == "trial of denoising"
    assert content["trials"][0] == {
        "option": "--strength 0.5",
        "per_image": "",
        "residual_sd": 10.0,
        "strength": 0.5,
    }
