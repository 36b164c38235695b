"""Accepted rows are learned as normal, and neither flagged nor listed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.explain import explain_row
from kpca_apps.novelty.result import CONTRADICTED, ScreeningResult
from kpca_apps.novelty.run import score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import ScreeningOptions, load_model, save_model
from kpca_apps.novelty.written_tables import write_tables
from kpca_apps.report.novelty.page import render_screening
from kpca_apps.report.result_json import result_to_json
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import Table, parted
from tests.novelty.tables import changed

N, RARE, FAULTS = 600, range(20), range(20, 26)


def parcels(seed: int = 0) -> pl.DataFrame:
    """Return parcels: 20 from CH are light and long, and 6 have faults."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(4000, 500, N)
    length = weight / 40 + rng.normal(0, 5, N)
    price = weight * 0.3 + rng.normal(0, 60, N)
    country, currency = rng.choice(["DE", "FR"], N).astype(object), np.full(N, "EUR", object)
    currency[rng.choice(np.arange(30, N), 100, replace=False)] = "USD"
    country[:20], currency[:20] = "CH", "CHF"
    weight[:20], length[:20] = rng.normal(900, 30, 20), rng.normal(150, 3, 20)
    weight[20:22], length[22:24], price[24:26] = 4.1, 500.0, -900.0
    return pl.DataFrame(
        {
            "name": [f"p{row:03d}" for row in range(N)],
            "weight": weight.round(1),
            "length": length.round(1),
            "price": price.round(2),
            "country": country.tolist(),
            "currency": currency.tolist(),
        }
    )


def table(frame: pl.DataFrame | None = None, name: str = "parcels.csv") -> Table:
    return table_from_frame(parcels() if frame is None else frame, name)


PATTERN = table(pl.DataFrame({"country": ["CH"], "currency": ["CHF"]}), "fine.csv")
ACCEPTED = table(parcels()[:14], "fine.csv")
OPTIONS = ScreeningOptions(share=0.04)


def flagged(result: ScreeningResult) -> set[int]:
    return set(np.flatnonzero(result.rows.is_flagged).tolist())


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_rare_kind_that_is_fine_leaves_the_list_and_faults_stay(in_parts: bool) -> None:
    rows = parted(table(), part_rows=200) if in_parts else table()
    before, _ = screen(rows, options=OPTIONS)
    assert len(flagged(before) & set(RARE)) >= 12
    after, model = screen(rows, accept=[PATTERN], options=OPTIONS)
    assert flagged(after).isdisjoint(RARE)
    assert set(FAULTS) <= flagged(after)
    assert set(after.rows.ranks[list(FAULTS)]) == set(range(1, 7))
    # The share is of the rows not accepted; accepted rows keep their scores and rank last.
    assert after.n_flagged == round(0.04 * (N - 20)) and after.n_judged == N - 20
    assert "of 580 that score highest" in after.threshold.statement
    assert (
        sorted(after.rows.ranks) == list(range(1, N + 1)) and after.rows.ranks[:20].min() == N - 19
    )
    assert all(row.row > 20 for row in after.ranked)
    assert after.lists.accepted is not None and after.lists.accepted.n_rows == 20
    assert after.lists.accepted.statement == (
        "20 rows are accepted in fine.csv and not listed; the model learned them as normal."
    )
    assert model.detector.flags_above == pytest.approx(after.threshold.value)


@pytest.mark.release
def test_parts_find_what_the_whole_finds() -> None:
    whole, _ = screen(table(), accept=[ACCEPTED], options=OPTIONS)
    in_parts, _ = screen(parted(table(), part_rows=200), accept=[ACCEPTED], options=OPTIONS)
    assert in_parts.rows.is_accepted is not None and whole.rows.is_accepted is not None
    np.testing.assert_array_equal(in_parts.rows.is_accepted, whole.rows.is_accepted)
    np.testing.assert_allclose(in_parts.rows.scores, whole.rows.scores, rtol=1e-6)
    assert flagged(in_parts) == flagged(whole)
    assert in_parts.findings.odd_cells == whole.findings.odd_cells


@pytest.mark.release
def test_similar_rows_that_were_not_accepted_score_lower() -> None:
    before, old = screen(table(), options=OPTIONS)
    after, new = screen(table(), accept=[ACCEPTED], options=OPTIONS)
    others = slice(14, 20)
    places = [
        np.median([(run.rows.scores[14:] >= score).sum() for score in run.rows.scores[others]])
        for run in (before, after)
    ]
    assert places[1] > 2 * places[0]
    # Other rows from CH, in a later table, are flagged less often, too.
    later = table(parcels(seed=9)[:20], "later.csv")
    flags = [score(model, later).n_flagged for model in (old, new)]
    assert flags[1] < flags[0]


def test_a_row_whose_cell_has_changed_is_listed_again() -> None:
    changed = parcels()
    changed[3, "price"] = 9_999.0
    result, _ = screen(table(changed), accept=[ACCEPTED], options=OPTIONS)
    assert result.rows.is_accepted is not None and not result.rows.is_accepted[3]
    assert (
        result.rows.is_flagged[3]
        and result.lists.accepted is not None
        and result.lists.accepted.n_rows == 13
    )
    (note,) = [text for text in result.run.warnings if "fine.csv" in text]
    assert "1 row matches no row of parcels.csv (row 4)" in note


def test_a_list_of_flagged_rows_is_accepted_as_it_is(tmp_path: Path) -> None:
    first, model = screen(table(), options=OPTIONS)
    # Rows with an odd cell are listed, too.
    odd = {row - 1 for cell in first.findings.odd_cells for row in (cell.row, *cell.more_rows)}
    assert odd == {*FAULTS}
    for name in ("flagged.csv", "flagged.xlsx"):
        path = tmp_path / name
        write_tables(tmp_path, table(), changed(first, flagged_file=name), model.encoder.plan)
        again, _ = screen(table(), accept=[read_table(path)], options=OPTIONS)
        assert again.rows.is_accepted is not None
        assert set(np.flatnonzero(again.rows.is_accepted)) == flagged(first) | odd
        assert not any("flagged" in text for text in again.run.warnings)
    hidden = replace(OPTIONS, columns=ColumnOptions(hide=("price",)))
    result = changed(screen(table(), options=hidden)[0], flagged_file="h.csv")
    write_tables(tmp_path, table(), result, model.encoder.plan)
    assert "price" not in read_table(tmp_path / "h.csv").frame.columns


@pytest.mark.release
def test_cells_of_accepted_rows_are_not_odd_by_themselves() -> None:
    frame = parcels()
    frame[40, "length"], frame[41, "length"] = 90_000.0, 80_000.0
    frame = frame.with_columns(country=pl.col("country").replace({"CH": "DE"}))
    frame[50, "country"], frame[51, "country"] = "Fr", "fR"
    before, _ = screen(table(frame), options=OPTIONS)
    # Leave out cells that are listed because they contradict the rest of their rows.
    seen = {cell.seen for cell in before.findings.odd_cells if cell.kind != CONTRADICTED}
    assert seen == {"90000.0", "80000.0", "Fr", "fR"}
    fine = table(frame[[40, 50]], "fine.csv")
    for rows in (table(frame), parted(table(frame), part_rows=200)):
        after, _ = screen(rows, accept=[fine], options=OPTIONS)
        left = {cell.seen for cell in after.findings.odd_cells if cell.kind != CONTRADICTED}
        assert left == {"80000.0", "fR"}


@pytest.mark.release
def test_scoring_skips_accepted_rows_and_keeps_the_model() -> None:
    model, _ = fit_table(table(parcels()[30:], "clean.csv"), clean=True)
    plain = score(model, table())
    rates = score(model, table(), accept=[PATTERN])
    assert rates.rows.scores.tobytes() == plain.rows.scores.tobytes()
    assert rates.threshold == plain.threshold and flagged(rates) == flagged(plain) - set(RARE)
    assert rates.lists.accepted is not None
    assert rates.lists.accepted.statement == "20 rows are accepted in fine.csv and not listed."
    # With a false discovery rate, accepted rows do not count, as if the table did not have them.
    options = replace(model.options, fdr=0.1)
    listed = score(model, table(), accept=[PATTERN], options=options)
    others = score(model, table(parcels()[20:]), options=options)
    assert {row - 20 for row in flagged(listed)} == flagged(others)
    with pytest.raises(InputError, match="1 of the 1"):
        score(model, table(parcels()[:1]), accept=[PATTERN])


@pytest.mark.release
def test_a_model_file_knows_nothing_of_them_but_what_was_learned(tmp_path: Path) -> None:
    result, model = screen(table(), accept=[ACCEPTED], options=OPTIONS)
    save_model(model, tmp_path / "m.kpca")
    again = score(load_model(tmp_path / "m.kpca"), table(), accept=[ACCEPTED])
    assert flagged(again) == flagged(result)
    np.testing.assert_array_equal(again.rows.ranks, result.rows.ranks)
    assert score(load_model(tmp_path / "m.kpca"), table()).rows.is_accepted is None


@pytest.mark.release
def test_one_row_is_explained_at_the_place_it_has_in_the_list() -> None:
    result, model = screen(table(), accept=[ACCEPTED], options=OPTIONS)
    first = result.ranked[0]
    row, _ = explain_row(model, table(), row=str(first.row), accept=[ACCEPTED])
    assert (row.rank, row.flagged) == (1, True)
    row, _ = explain_row(model, table(), row="1", accept=[ACCEPTED])
    assert not row.flagged and row.rank > N - 14


@pytest.mark.release
def test_accepted_rows_join_a_clean_reference() -> None:
    reference = table(parcels(seed=1)[30:], "clean.csv")
    plain, _ = screen(table(), reference=reference)
    result, model = screen(table(), reference=reference, accept=[ACCEPTED])
    assert model.source.n_rows == N - 30 + 14
    assert model.source.name == "clean.csv and 14 accepted rows"
    assert result.threshold.n_calibration == N - 30 + 14
    assert flagged(result).isdisjoint(range(14)) and set(FAULTS) <= flagged(result)
    # The reference has no row from CH, so the model learns this country from the accepted rows.
    assert len(flagged(plain) & set(RARE)) == 20
    assert np.median(result.rows.scores[14:20]) < np.median(plain.rows.scores[14:20]) - 1
    levels = model.encoder.coders[[c.spec.name for c in model.encoder.coders].index("country")]
    assert "CH" in str(levels)
    # Rows of the reference itself may be accepted.
    same, fitted = screen(reference, reference=reference, accept=[table(parcels(seed=1)[40:41])])
    assert fitted.source.n_rows == N - 30
    assert same.rows.is_accepted is not None and same.rows.is_accepted.sum() == 1


@pytest.mark.release
def test_a_reference_in_parts_takes_them_as_one_in_memory_does(tmp_path: Path) -> None:
    parcels(seed=1)[30:].write_csv(tmp_path / "clean.csv")
    parcels().write_csv(tmp_path / "parcels.csv")
    results = [
        screen(
            open_table(tmp_path / "parcels.csv", in_memory_rows=most, part_rows=200),
            reference=open_table(tmp_path / "clean.csv", in_memory_rows=most, part_rows=200),
            accept=[ACCEPTED],
        )
        for most in (1_000, 100)
    ]
    assert results[0][1].source.sha256 == results[1][1].source.sha256
    np.testing.assert_allclose(results[0][0].rows.scores, results[1][0].rows.scores, rtol=1e-6)


@pytest.mark.release
def test_accepted_false_alarms_do_not_raise_the_rate() -> None:
    """Accepted rows with high scores join the calibration, so fewer rows like them are flagged."""
    rates = []
    for seed in range(4):
        reference, first, later = (
            table(parcels(seed=100 * seed + i)[30:], name)
            for i, name in enumerate(["clean.csv", "first.csv", "later.csv"])
        )
        plain, old = screen(first, reference=reference, options=ScreeningOptions(alpha=0.1))
        fine = table(first.frame.filter(plain.rows.is_flagged), "fine.csv")
        _, new = screen(
            first, reference=reference, accept=[fine], options=ScreeningOptions(alpha=0.1)
        )
        rates.append([score(model, later).rows.is_flagged.mean() for model in (old, new)])
    before, after = np.mean(rates, axis=0)
    assert before == pytest.approx(0.1, abs=0.03)
    assert after < 0.8 * before


def test_what_is_known_is_reported_with_the_list(tmp_path: Path) -> None:
    result, model = screen(table(), accept=[PATTERN], options=OPTIONS)
    assert "20 rows are accepted in fine.csv and not listed" in render_screening(result)
    text = result_to_json(result)
    assert '"n_rows": 20' in text and "is_accepted" not in text
    plan = model.encoder.plan
    write_tables(tmp_path, table(), changed(result, flagged_file="flagged.csv"), plan)
    scored = pl.read_csv(tmp_path / "scored.csv", infer_schema_length=None)
    assert np.flatnonzero(scored["accepted"]).tolist() == list(RARE)
    plain, _ = screen(table(), options=OPTIONS)
    write_tables(tmp_path, table(), changed(plain, flagged_file="flagged.csv"), plan)
    assert "accepted" not in pl.read_csv(tmp_path / "scored.csv", infer_schema_length=None).columns


def test_what_leaves_no_usual_rows_is_refused() -> None:
    many = table(pl.DataFrame({"currency": ["EUR"]}), "fine.csv")
    with pytest.raises(InputError, match="480 of the 600"):
        screen(table(), accept=[many])
    with pytest.raises(ConfigError, match="580 rows"):
        screen(table(), accept=[PATTERN], options=ScreeningOptions(count=580))
    typed = table(parcels(seed=1).with_columns(pl.col("weight").cast(pl.String)), "clean.csv")
    with pytest.raises(InputError, match='column "weight" is numbers, and in clean'):
        screen(table(), reference=typed, accept=[ACCEPTED])


@pytest.mark.parametrize("in_parts", [False, True])
def test_groups_of_rows_leave_accepted_ones_out_too(in_parts: bool) -> None:
    options = replace(OPTIONS, columns=ColumnOptions(by=("country",)))
    frame = pl.concat([parcels(), parcels(seed=1)[20:]]).filter(pl.col("country") != "CH")
    frame = pl.concat([frame, pl.concat([parcels(seed)[:20] for seed in range(3)])])
    whole = table(frame)
    rows = parted(whole, part_rows=300) if in_parts else whole
    some = table(frame.filter(country="CH")[:8], "fine.csv")
    for accept, n_accepted, groups in ((some, 8, {"DE", "FR", "CH"}), (PATTERN, 60, {"DE", "FR"})):
        result, model = screen(rows, accept=[accept], options=options)
        # A group needs enough rows that are not accepted.
        assert {group.values[0] for group in model.groups if group.values} == groups
        accepted = result.rows.is_accepted
        assert accepted is not None and accepted.sum() == n_accepted
        assert not result.rows.is_flagged[accepted].any()
        n_judged = len(frame) - n_accepted
        assert result.n_flagged == round(0.04 * n_judged)
        assert result.rows.ranks[accepted].min() == n_judged + 1
    # Scores are as if the table contained only the rows not accepted.
    alone, _ = screen(table(frame[: len(frame) - 60]), options=options)
    np.testing.assert_array_equal(result.rows.scores[: len(frame) - 60], alone.rows.scores)


@pytest.mark.parametrize("rule", [{"alpha": 0.05}, {"fdr": 0.2}])
def test_groups_of_a_clean_reference_leave_accepted_rows_out_too(rule: dict[str, float]) -> None:
    options = ScreeningOptions(**rule, columns=ColumnOptions(by=("country",)))
    clean = table(parcels(seed=2)[26:], "clean.csv")
    result, model = screen(table(), reference=clean, accept=[PATTERN], options=options)
    assert result.rows.is_accepted is not None and result.rows.p_values is not None
    judged = ~result.rows.is_accepted
    assert not result.rows.is_flagged[~judged].any() and set(FAULTS) <= flagged(result)
    above = result.rows.scores > result.threshold.value
    np.testing.assert_array_equal(result.rows.is_flagged, above & judged)
    assert sum(group.n_flagged for group in result.groups) == result.n_flagged
    again = score(model, table(), accept=[PATTERN])
    np.testing.assert_array_equal(again.rows.is_flagged, result.rows.is_flagged)
    listed, _ = explain_row(model, table(), row="22", accept=[PATTERN])
    assert listed.flagged and listed.group.startswith("country ")
