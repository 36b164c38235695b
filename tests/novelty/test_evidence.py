"""Rows are ranked by their strongest evidence: certain errors before rare values."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps import screen_table
from kpca_apps.novelty.evidence import Evidence, as_table, in_findings, strongest_by_row
from kpca_apps.novelty.findings.patterns import kinds_of_evidence
from kpca_apps.novelty.result import clearest
from kpca_apps.novelty.screening.judge import _move_ahead
from kpca_apps.report.novelty.text import headline
from tests.quick import quick

N = 1500


def patients(seed: int) -> tuple[pl.DataFrame, list[int]]:
    """Return patients with eight certain errors of three kinds, and the errors' 0-based rows."""
    rng = np.random.default_rng(seed)
    sbp = rng.normal(125, 15, N).round()
    height = rng.normal(170, 9, N).round(1)
    columns = {
        "age": rng.integers(18, 90, N).astype(float),
        "sbp": sbp,
        "dbp": np.minimum((sbp - rng.gamma(6, 7, N)).round(), sbp),
        "height": height,
        "weight": (height - 100 + rng.normal(0, 8, N)).round(1),
        "glucose": rng.lognormal(4.6, 0.2, N).round(),
    }
    town = rng.choice(["Amsterdam", "Rotterdam", "Utrecht", "Groningen"], N).astype(object)
    rows = rng.permutation(N)[:8].tolist()
    for row in rows[:3]:
        columns["dbp"][row] = columns["sbp"][row] + rng.integers(3, 20)
    columns["height"][rows[3:5]] = 17.2
    town[rows[5:]] = "Amstrdam", "Utrecth", "Groningn"
    return pl.DataFrame(columns | {"town": town.tolist()}), rows


@pytest.mark.parametrize("seed", quick(range(4), 0))
def test_certain_errors_come_before_what_is_rare(seed: int) -> None:
    frame, rows = patients(seed)
    result = screen_table(frame, count=3)
    assert {*result.rows.ranks[rows].tolist()} == {*range(1, 9)}
    # Rows are flagged by their scores alone. The list also has all rows with planted errors.
    assert result.n_flagged == 3
    assert result.n_listed == 3 + int((~result.rows.is_flagged[rows]).sum())
    listed = [entry.row for entry in result.lists.flagged]
    assert listed == (np.argsort(result.rows.ranks)[: result.n_listed] + 1).tolist()
    assert [row.flagged for row in result.lists.flagged] == result.rows.is_flagged[
        np.array(listed) - 1
    ].tolist()
    assert result.flagged()["rank"].to_list() == [*range(1, result.n_listed + 1)]
    # A pattern states its number of rows. The three clearest odd cells are in three columns.
    assert {pattern.sentence for pattern in result.findings.patterns} >= {
        '3 rows: "town" is a common value misspelt.',
        '2 rows: "height" is far below the rest of the column.',
        "3 rows: dbp <= sbp does not hold.",
    }
    assert len({cell.column for cell in clearest(result.findings.odd_cells)[:3]}) == 3
    n_cells = result.n_listed - 3
    assert f"3 of 1,500 rows stand out and {n_cells} more ha" in "".join(headline(result))
    # A row listed for one cell names that cell and the reason.
    for entry in result.ranked[:8]:
        assert entry.reasons[0].column in ("dbp", "sbp", "height", "town") and entry.hints


def test_a_stuck_sensor_takes_one_place_of_the_list() -> None:
    rng = np.random.default_rng(3)
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2025, 12, 31), eager=True).head(N)
    sensors = 20 + np.cumsum(rng.normal(0, 0.1, (N, 1)), axis=0) + rng.normal(0, 0.3, (N, 3))
    sensors[400:460, 1] = sensors[400, 1]
    sensors[900, 0] *= 10
    columns = {"inlet": sensors[:, 0], "outlet": sensors[:, 1], "room": sensors[:, 2]}
    result = screen_table(pl.DataFrame({"day": days} | columns), count=3)
    (stuck,) = (cell for cell in result.findings.odd_cells if cell.kind == "stuck")
    assert (stuck.row, stuck.n_cells) == (401, 60)
    assert {result.rows.ranks[400], result.rows.ranks[900]} == {1, 2}
    assert (result.rows.ranks[401:460] > 3).sum() >= 58


def test_a_rule_that_many_rows_break_does_not_fill_the_head_of_the_list() -> None:
    frame, rows = patients(0)
    many = np.random.default_rng(1).choice(N, 40, replace=False)
    later = frame["sbp"].to_numpy().copy()
    later[many] = frame["dbp"].to_numpy()[many] - 5
    result = screen_table(frame.with_columns(sbp=later), explain=0)
    assert {*result.rows.ranks[rows[3:]].tolist()} == {*range(1, 6)}
    assert result.rows.ranks[many].max() <= result.n_listed


def line(row: int, log_p: float, **more: str) -> Evidence:
    cell = {"column": "a", "kind": "sign", "rule": "", "seen": "", "sentence": ""} | more
    return Evidence(row=row, log_p=log_p, suggestion="", expected="", support=9, **cell)


def findings(lines: list[Evidence]) -> pl.DataFrame:
    """Return findings of these lines, the strongest first."""
    cells = as_table(lines).with_columns(line=pl.col("row"), n_cells=pl.lit(1, pl.Int64))
    return in_findings(cells.sort("log_p", "row", maintain_order=True))


@settings(deadline=None)
@given(
    ranks=st.permutations(range(1, 13)),
    cells=st.dictionaries(st.integers(1, 12), st.floats(-50, 0), max_size=12),
    n_wrong=st.integers(0, 3),
    n_flagged=st.integers(3, 12),
)
def test_rows_move_ahead_of_those_as_odd_and_others_keep_their_order(
    ranks: list[int], cells: dict[int, float], n_wrong: int, n_flagged: int
) -> None:
    # Equal odd cells in consecutive rows would count as one fault, so each row has another value.
    evidence = findings([line(row, log_p, seen=str(row)) for row, log_p in cells.items()])
    before, after = np.array(ranks), np.array(ranks)
    _move_ahead(after, evidence, n_wrong, n_flagged)
    assert sorted(after.tolist()) == [*range(1, 13)]
    is_first, has_cell = before <= n_wrong, np.isin(np.arange(1, 13), [*cells])
    np.testing.assert_array_equal(after[is_first], before[is_first])
    others = np.flatnonzero(~has_cell)
    np.testing.assert_array_equal(np.argsort(after[others]), np.argsort(before[others]))
    # Rows with an odd cell are listed together with the flagged rows.
    is_listed = (before <= n_flagged) | has_cell
    assert after[is_listed].max() == is_listed.sum()
    # If all 12 rows were correct, 12 p of them would by chance have a cell with a p-value up to p.
    # So a row whose odd cell has p-value p has at most 12 p rows without odd cells ahead of it.
    for row in np.flatnonzero(has_cell & ~is_first).tolist():
        n_ahead = int((~has_cell & ~is_first & (after < after[row])).sum())
        assert n_ahead <= min(12 * np.exp(cells[row + 1]), before[row])


def test_rows_are_counted_once_by_their_strongest_evidence() -> None:
    rule = {"rule": "a <= b", "kind": "contradicted"}
    lines = [line(3, -9.0), line(3, -2.0, **rule), line(4, -8.0, **rule), line(7, -7.0, column="b")]
    lines += [line(5, -6.0, column="b", seen="9", **rule)]
    both = {("a", "b"), ("b", "a")}  # each column of the rule, with the other one
    lines = [
        line._replace(given=tuple(b for a, b in both if a == line.column)) if line.rule else line
        for line in lines
    ]
    # One sentence tells of odd cells of the same kind in one row, and names their columns.
    lines += [line(8, -5.0, kind="zero", column="b"), line(8, -4.0, kind="zero")]
    lines += [line(9, -5.5, kind="zero"), line(9, -4.5, kind="zero", column="b")]
    kinds = [(kind.rows, kind.sentence) for kind in kinds_of_evidence(findings(lines), ["a", "b"])]
    assert sorted(kinds) == [
        ((3,), '1 row: "a" has the wrong sign.'),
        ((4, 5), "2 rows: a <= b does not hold."),
        ((7,), '1 row: "b" has the wrong sign.'),
        ((8, 9), '2 rows: "a" and "b" are 0, far from all others.'),
    ]
    assert kinds_of_evidence(findings([]), ["a"]) == ()


@pytest.mark.parametrize("kind", ["stuck", "placeholder", "misspelt"])
def test_rows_that_follow_each_other_in_one_finding_are_one_fault(kind: str) -> None:
    lines = [line(row, -9.0, kind=kind) for row in (4, 5, 6, 9)] + [line(5, -2.0, column="b")]
    assert sorted(strongest_by_row(findings(lines)).rows()) == [
        (4, -9.0),
        (5, -2.0),
        (6, 0.0),
        (9, -9.0),
    ]


def test_a_gap_is_no_headline_and_no_value_is_never_expected() -> None:
    frame, _ = patients(0)
    gaps = np.arange(N) % 7 == 0
    some = frame.with_columns(
        weight=pl.when(pl.Series(np.arange(N) == 11)).then(None).otherwise("weight"),
        note=pl.when(pl.Series(gaps)).then(pl.lit("seen")).otherwise(None),
    )
    result = screen_table(some, explain=60)
    reasons = [reason for row in result.ranked for reason in row.reasons]
    assert not any(reason.expected == "(missing)" for reason in reasons)
    for row in result.ranked:
        is_gap = [reason.seen == "(missing)" for reason in row.reasons if not reason.together]
        assert is_gap == sorted(is_gap)


@pytest.mark.parametrize("names", [None, ("5.3", "3.2", "setosa"), ("2001", "2002", "2003")])
def test_a_file_without_a_header_is_noticed(tmp_path: Path, names: tuple[str, ...] | None) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.1f},{b:.1f},{kind}"
        for a, b, kind in zip(
            rng.normal(5, 0.5, 99),
            rng.normal(3, 0.4, 99),
            ["setosa", "virginica"] * 50,
            strict=False,
        )
    ]
    header = ",".join(names or ("length", "width", "species"))
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    assert len(
        [note for note in screen_table(path, explain=0).run.warnings if "without a header" in note]
    ) == (names is not None and names[0] == "5.3")


@pytest.mark.parametrize("hidden", quick(["town", "zip", "price", "amount"], "zip"))
def test_evidence_of_hidden_columns_cites_none_of_their_values(hidden: str) -> None:
    rng = np.random.default_rng(3)
    places = {"Utrecht": "U-3511", "Arnhem": "A-6811", "Zwolle": "Z-8011"}
    towns = rng.choice([*places], 600)
    qty, price = rng.integers(2, 30, 600), rng.uniform(3, 90, 600).round(2)
    table = pl.DataFrame({"town": towns, "zip": [places[town] for town in towns]})
    table = table.with_columns(qty=pl.Series(qty), price=price, amount=(qty * price).round(2))
    # A typing error, a wrong zip code, a lost decimal point, and a wrong product.
    table[10, "town"], table[20, "zip"] = (
        "Utrehct",
        places["Arnhem" if towns[20] != "Arnhem" else "Zwolle"],
    )
    table[30, "price"], table[40, "amount"] = 7613.7, 4127.43
    right = {"town": "Utrecht", "zip": "", "price": "", "amount": f"{qty[40] * price[40]:.2f}"}
    planted = {"town": "Utrehct", "zip": table[20, "zip"], "price": "7613.7", "amount": "4127.43"}

    def text(*hide: str) -> str:
        result = screen_table(table, hide=hide)
        return repr(
            (
                result.findings.odd_cells,
                result.lists.flagged,
                result.findings.patterns,
                result.ranked,
                result.findings.rules,
            )
        )

    words = {*filter(None, (right[hidden], planted[hidden]))}
    if hidden == "zip":
        words = {*places.values()}
    shown, secret = text(), text(hidden)
    assert all(word in shown for word in words)
    assert not [word for word in words if word in secret]
