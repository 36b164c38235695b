from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kpca_apps.report.result_json import result_to_json
from tests.report import examples


@pytest.mark.parametrize("make", examples.SCREENINGS.values(), ids=examples.SCREENINGS.keys())
def test_every_result_becomes_json(make: examples.Make) -> None:
    result = make()
    text = result_to_json(result)
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"not JSON: {name}"))
    assert text.encode()
    assert text == result_to_json(make())
    assert list(content) == sorted(content)
    assert content["n_flagged"] == result.n_flagged
    assert content["n_rows"] == len(result.scores)
    assert len(content["ranked"]) == len(result.ranked)
    assert not {"scores", "p_values", "flagged", "ranks", "map"} & set(content)
    assert set(content["components"]) == {"variances", "gains", "explained"}


def test_numbers_are_exact_and_infinity_has_a_name() -> None:
    result = examples.infinite_threshold()
    result = replace(result, settings={"gamma": float("nan"), "share": 0.1})
    content = json.loads(result_to_json(result))
    assert content["threshold"]["value"] == "inf"
    assert content["settings"] == {"gamma": None, "share": 0.1}
    assert content["ranked"][0]["score"] == result.ranked[0].score


def test_hidden_values_and_timings_stay_out() -> None:
    hidden = result_to_json(examples.hidden())
    assert "1950" not in hidden
    assert "N262A1" not in hidden
    assert "seconds" not in result_to_json(examples.with_labels())


def test_a_comparison_becomes_json() -> None:
    content = json.loads(result_to_json(examples.comparison()))
    assert content["kind"] == "novelty comparison"
    methods = content["evaluations"][0]["methods"]
    assert [method["name"] for method in methods][:2] == ["kernel PCA", "Parzen"]
    assert all("seconds" not in method for method in methods)
