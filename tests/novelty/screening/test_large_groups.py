"""A large group of rows apart from the others does not fill the list; a small one is listed."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.run import score, screen
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table
from kpca_apps.tables.table import PartedTable
from tests.tables.whole_and_parts import in_parts

N = 2_000
SHARE = 0.02
APART = "apart from the others"


def visits(part: float, seed: int = 0, *, n_odd: int = 8) -> tuple[pl.DataFrame, np.ndarray]:
    """Return a table with columns `limits`, `a` and `b`, and a mask of rows with limits "yes".

    These limited rows, a fraction `part` of all rows, lie apart from the other rows and spread
    twice as far. The columns `a` and `b` are correlated, but contradict each other in the first
    `n_odd` limited rows and in the first `n_odd` other rows.
    """
    rng = np.random.default_rng(seed)
    is_limited = np.arange(N) < round(part * N)
    rng.shuffle(is_limited)
    size = rng.normal(size=N)
    wide = np.where(is_limited, 2.0, 1.0)
    columns = {name: wide * (size + 0.3 * rng.normal(size=N)) + 4.0 * is_limited for name in "ab"}
    for of_kind in (is_limited, ~is_limited):
        rows = np.flatnonzero(of_kind)[:n_odd]
        centre = 4.0 * is_limited[rows]
        columns["a"][rows], columns["b"][rows] = centre + 4.0, centre - 4.0
    limits = np.where(is_limited, "yes", rng.choice(["no", "no answer"], N))
    return pl.DataFrame({"limits": limits, **columns}), is_limited


def odd_of(is_limited: np.ndarray, n_odd: int = 8) -> np.ndarray:
    return np.r_[np.flatnonzero(is_limited)[:n_odd], np.flatnonzero(~is_limited)[:n_odd]]


def screened(frame: pl.DataFrame, **changes: object) -> ScreeningResult:
    options = ScreeningOptions(**{"share": SHARE, "explain": 0, **changes})  # type: ignore[arg-type]
    return screen(table_from_frame(frame, "visits"), options=options)[0]


@pytest.mark.parametrize("part", [0.06, 0.12, 0.25])
def test_a_large_group_has_about_its_share_of_the_list_and_its_oddest_are_there(
    part: float,
) -> None:
    frame, is_limited = visits(part)
    result = screened(frame)
    flagged = result.rows.is_flagged
    assert flagged[odd_of(is_limited)].mean() > 0.8
    others = np.setdiff1d(np.flatnonzero(flagged), odd_of(is_limited))
    # The group's share of the list may exceed its share of the rows: scores also depend on
    # relations between columns, and the group scatters more than the other rows.
    assert is_limited[others].mean() < 3.5 * part
    (note,) = [text for text in result.run.warnings if APART in text]
    assert f'{100 * part:.0f} % of the rows have "yes" in "limits"' in note


@pytest.mark.parametrize("values", ["numbers", "flags", "gaps"])
def test_the_group_may_be_of_a_number_a_flag_or_a_gap(values: str) -> None:
    frame, is_limited = visits(0.12)
    limits = frame["limits"].to_numpy()
    rng = np.random.default_rng(1)
    column, words = {
        "numbers": (np.where(is_limited, 3, rng.integers(0, 3, N)).tolist(), 'have 3 in "limits"'),
        "flags": (is_limited.tolist(), '"true" in "limits"'),
        "gaps": ([None if text == "yes" else text for text in limits], 'no "limits"'),
    }[values]
    result = screened(frame.with_columns(pl.Series("limits", column)))
    (note,) = [text for text in result.run.warnings if APART in text]
    assert words in note
    assert result.rows.is_flagged[is_limited].sum() < 0.5 * result.rows.is_flagged.sum()


def test_a_cluster_of_few_rows_is_listed() -> None:
    frame, is_limited = visits(0.015, n_odd=0)
    result = screened(frame)
    assert result.rows.is_flagged[is_limited].mean() > 0.8
    assert not any(APART in text for text in result.run.warnings)


def test_the_value_of_a_hidden_column_is_not_reported() -> None:
    frame, _ = visits(0.12)
    hidden = ColumnOptions(hide=("limits",))
    (note,) = [text for text in screened(frame, columns=hidden).run.warnings if APART in text]
    assert "yes" not in note


def test_a_table_without_such_a_group_is_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, is_limited = visits(0.12)
    usual = frame.filter(~is_limited)
    result = screened(usual)
    assert not any(APART in text for text in result.run.warnings)
    monkeypatch.setattr("kpca_apps.novelty.screening.fit.MAX_LARGE_GROUPS", 0)
    np.testing.assert_array_equal(screened(usual).rows.scores, result.rows.scores)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "visits.csv"
    visits(0.12)[0].write_csv(path)
    return path


def test_a_table_in_parts_has_the_same_groups(path: Path) -> None:
    parted = in_parts(path, 256)
    assert isinstance(parted, PartedTable)
    options = ScreeningOptions(share=SHARE, explain=0)
    whole, parts = (screen(table, options=options)[0] for table in (open_table(path), parted))
    assert any(APART in text for text in parts.run.warnings)
    np.testing.assert_allclose(parts.rows.scores, whole.rows.scores, rtol=1e-6)


def test_a_model_that_was_saved_knows_the_group(path: Path, tmp_path: Path) -> None:
    options = ScreeningOptions(share=SHARE, explain=0)
    _, model = screen(open_table(path), options=options)
    save_model(model, tmp_path / "visits.kpca")
    frame, is_limited = visits(0.12, seed=1)
    new = table_from_frame(frame, "more visits")
    result = score(load_model(tmp_path / "visits.kpca"), new)
    others = np.setdiff1d(np.flatnonzero(result.rows.is_flagged), odd_of(is_limited))
    assert is_limited[others].mean() < 0.5
    np.testing.assert_array_equal(result.rows.scores, score(model, new).rows.scores)
