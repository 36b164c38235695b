from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps import fit_model, load_model, save_model, score_table, screen_table
from kpca_apps.report.novelty.page import render_screening


def people(seed: int, n: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    return pl.DataFrame(
        {
            "weight": 70 + 9 * size + rng.normal(size=n),
            "height": 170 + 8 * size + rng.normal(size=n),
            "town": np.array(["Bern", "Genf"])[rng.integers(0, 2, n)],
        }
    )


@pytest.mark.release
def test_a_score_says_which_columns_moved_and_what_that_means(tmp_path: Path) -> None:
    save_model(fit_model(people(0)), tmp_path / "m.kpca")
    model = load_model(tmp_path / "m.kpca")
    assert score_table(model, people(1)).findings.moved == ()
    result = score_table(model, people(1).with_columns(pl.col("weight") * 2.2))
    (moved,) = result.findings.moved
    assert (moved.column, moved.what) == ("weight", "distribution")
    assert moved.size > 0.9 and moved.words.startswith("median 15")
    # This warning comes first, because rates hold only for rows like the reference.
    assert result.run.warnings[0].startswith(
        '"weight" is distributed differently than in table: p-'
    )
    assert result.run.n_doubts >= 1
    page = render_screening(result)
    assert "Columns that moved" in page and moved.words in page


def test_a_reference_is_compared_and_a_table_with_itself_is_not() -> None:
    later = people(1).with_columns(pl.lit("Chur").alias("town"))
    result = screen_table(later, reference=people(0))
    assert [item.column for item in result.findings.moved] == ["town"]
    assert screen_table(later).findings.moved == ()


@pytest.mark.parametrize("when", ["fit", "score"])
def test_values_of_hidden_columns_are_not_reported(when: str) -> None:
    model = fit_model(people(0), hide="weight" if when == "fit" else ())
    result = score_table(model, people(1).with_columns(pl.col("weight") + 1234.5), hide="weight")
    assert [column.words for column in result.findings.moved] == ["values hidden"]
