"""A broken relation raises a row's score and names the cells that contradict the relation."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kpca_apps import Screening, fit_model, load_model, save_model, score_table, screen_table
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.relations.conditional.counts import RowsAlike
from kpca_apps.novelty.relations.conditional.counts import contradicted as evidence_of
from kpca_apps.novelty.relations.relations import Relations
from kpca_apps.tables.frames import table_from_frame

PLACES = [("Bern", "3000"), ("Basel", "4000"), ("Genf", "1200"), ("Chur", "7000"), ("Zug", "6300")]
TOWN, STAY, TOTAL = 30, 77, 200  # 0-based rows with a fault


def orders(n: int = 400) -> pl.DataFrame:
    """Return orders of which three rows break a relation that all others satisfy."""
    rng = np.random.default_rng(5)
    place, street = rng.integers(0, len(PLACES), n), rng.integers(0, 40, n)
    place = np.arange(40)[street] % len(PLACES)
    start = np.datetime64("2024-01-01") + rng.integers(0, 300, n)
    days, price, number = (
        rng.integers(1, 20, n),
        rng.uniform(20, 200, n).round(2),
        rng.integers(1, 9, n),
    )
    columns = {
        "street": [f"street {k}" for k in street],
        "town": [PLACES[k][0] for k in place],
        "zip": [PLACES[k][1] for k in place],
        "start": start,
        "end": start + days,
        "price": price,
        "number": number,
        "total": (price * number).round(2),
    }
    columns["town"][TOWN] = "Zug" if columns["town"][TOWN] != "Zug" else "Bern"
    columns["end"][STAY] = start[STAY] - np.timedelta64(40, "D")
    columns["total"][TOTAL] += 10.01  # now no multiple of the price
    return pl.DataFrame(columns).with_columns(pl.col("start", "end").cast(pl.String))


def contradicted(result: Screening) -> dict[tuple[int, str], tuple[str, str]]:
    cells = (cell for cell in result.findings.odd_cells if cell.kind == "contradicted")
    return {(cell.row - 1, cell.column): (cell.suggestion, cell.sentence) for cell in cells}


@pytest.fixture(scope="module")
def screened() -> Screening:
    return screen_table(orders(), share=0.02)


def test_what_a_row_contradicts_is_named_with_its_evidence(screened: Screening) -> None:
    evidence, frame = contradicted(screened), orders()
    street, zip = frame["street"][TOWN], frame["zip"][TOWN]
    meant = {town: name for name, town in PLACES}[zip]
    suggestion, sentence = evidence[TOWN, "town"]
    assert suggestion == meant and f'read "{meant}"' in sentence
    assert street in sentence or zip in sentence
    price, number = frame["price"][TOTAL], frame["number"][TOTAL]
    suggestion, sentence = evidence[TOTAL, "total"]
    assert float(suggestion) == pytest.approx(price * number, rel=1e-5)
    assert sentence == "total = price * number in 399 of 400 rows."
    assert {row for row, _ in evidence} == {TOWN, STAY, TOTAL}


def test_contradictory_rows_rank_first_and_list_the_contradiction(screened: Screening) -> None:
    for row, column in ((TOWN, "town"), (TOTAL, "total")):
        ranked = next(entry for entry in screened.ranked if entry.row == row + 1)
        assert ranked.rank <= 8 and ranked.reasons[0].column == column
        assert any(column in hint for hint in ranked.hints)


def test_rules_are_part_of_the_result(screened: Screening) -> None:
    rules = {item.rule: item for item in screened.findings.rules}
    assert rules["start <= end"].rows == (STAY + 1,)
    assert rules["total = price * number"].n_broken == 1


def test_a_saved_model_finds_the_same_in_its_own_table(tmp_path: Path) -> None:
    table = tmp_path / "orders.csv"
    orders().write_csv(table)
    result = screen_table(table, share=0.02)
    save_model(result.model, tmp_path / "m.kpca")
    again = score_table(load_model(tmp_path / "m.kpca"), table)
    assert contradicted(again) == contradicted(result) != {}
    np.testing.assert_array_equal(again.rows.scores, result.rows.scores)


def test_a_row_depends_on_no_other_row() -> None:
    table = table_from_frame(orders(), "orders")
    learned = Relations.learn(table, infer_plan(table))
    whole = learned.judge(table)
    parts = [table_from_frame(orders()[start : start + 70], "part") for start in range(0, 400, 70)]
    judged = [learned.judge(part) for part in parts]
    np.testing.assert_array_equal(np.concatenate([of.surprise for of in judged]), whole.surprise)
    assert sum(len(part.evidence) for part in judged) == len(whole.evidence) > 0


def test_rows_learned_from_are_judged_like_new_ones() -> None:
    rng = np.random.default_rng(0)

    def draw(n: int) -> pl.DataFrame:
        given = rng.zipf(1.4, n) % 200
        follows = np.where(rng.random(n) < 0.8, given % 7, rng.integers(0, 7, n))
        other = np.where(rng.random(n) < 0.8, follows, rng.integers(0, 7, n))
        return pl.DataFrame(
            {"given": [f"g{k}" for k in given], "a": [f"a{k}" for k in follows]}
            | {"b": [f"b{k}" for k in other]}
        )

    shares = []
    for _ in range(4):
        table, new = (table_from_frame(draw(n), "t") for n in (500, 4000))
        learned = Relations.learn(table, infer_plan(table))
        own = learned.judge(table, own=np.ones(500, dtype=bool)).surprise
        shares.append((learned.judge(new).surprise > np.quantile(own, 0.95)).mean())
    assert 0.02 < np.mean(shares) < 0.08


@pytest.mark.parametrize("width", [3, 4])
def test_later_rows_are_not_judged_by_the_width_of_what_names_them(width: int) -> None:
    rng = np.random.default_rng(0)
    numbers = pl.DataFrame({"x": rng.normal(size=260), "y": rng.normal(size=260)})
    ids = [f"P{k:0{width}}" for k in range(1, 201)]
    model = fit_model(numbers[:200].with_columns(pid=pl.Series(ids)))
    later = [f"P{k:05}" for k in range(201, 240)] + [f"P{k}" for k in range(99, 119)] + ["Total"]
    result = score_table(model, numbers[200:].with_columns(pid=pl.Series(later)))
    assert [*contradicted(result)] == [(59, "pid")]
    assert [rule.n_broken for rule in result.findings.rules if rule.kind == "code"] == [1]
    # In the table that the model was fitted to, an id with an extra digit would be an error.
    ids[7] = "P00080"
    screened = screen_table(numbers[:200].with_columns(pid=pl.Series(ids)))
    assert [*contradicted(screened)] == [(7, "pid")]


def test_a_table_that_lacks_a_column_is_judged_by_the_others() -> None:
    model = fit_model(orders().drop("price"), exclude=["street"])
    result = score_table(model, orders().drop("price", "street"))
    assert any(row == STAY for row, _ in contradicted(result))


@pytest.mark.parametrize("hidden", ["zip", "number"])
def test_hidden_cells_are_not_revealed_by_what_they_contradict(hidden: str) -> None:
    result = screen_table(orders(), share=0.02, hide=hidden)
    for cell in result.findings.odd_cells:
        assert hidden not in cell.sentence and (hidden not in cell.given or not cell.suggestion)
    assert (
        not any("price * number" in one.rule for one in result.findings.rules) or hidden != "number"
    )


@pytest.mark.parametrize("seed", [2, 7, 16])
@pytest.mark.parametrize("name", ["qty", "amount"])
def test_a_formula_confirms_the_cells_of_a_row_or_names_one(seed: int, name: str) -> None:
    """Only wrong rows are found, although few prices and quantities make many amounts equal.

    With some prices, half cents are rounded in one of 50 rows (seed 16).
    """
    rng = np.random.default_rng(seed)
    price = rng.choice(np.round(rng.uniform(2, 40, 6), 1), 1500)
    qty, discount = rng.integers(1, 13, 1500), rng.choice([0, 0.05, 0.1], 1500)
    amount = np.round(qty * price * (1 - discount), 2)
    columns = {"qty": qty, "price": price, "discount": discount, "amount": amount}
    right = columns[name].copy()
    for wrong in ([], [100], [100, 700, 1400]):
        other = (qty + 5) % 13 + 1 if name == "qty" else (1.37 * amount + 5).round(2)
        columns[name] = np.where(np.isin(np.arange(1500), wrong), other, right)
        table = table_from_frame(pl.DataFrame(columns), "orders")
        relations = Relations.learn(table, infer_plan(table))
        found = relations.judge(table, own=np.ones(1500, dtype=bool)).evidence
        assert {*found["row"]} == {*wrong}
        # A wrong quantity may be an amount that fits worse.
        assert name == "qty" or {*found["column"]} <= {"amount"}


def test_a_doubt_is_no_misspelling() -> None:
    place = np.repeat(np.arange(10), 30)
    columns = {name: [f"{name} {i}" for i in place] for name in ("period", "site", "dig")}
    columns["period"][40], columns["period"][70] = "period 1?", "periot 2"
    table = table_from_frame(pl.DataFrame(columns), "finds")
    judged = Relations.learn(table, infer_plan(table)).judge(table, own=np.ones(300, bool))
    assert dict(judged.evidence.select("row", "suggestion").rows()) == {70: "period 2"}


@pytest.mark.parametrize(("n_agreeing", "suggestion"), [(4, ""), (5, "Bern")])
def test_few_rows_suggest_nothing(n_agreeing: int, suggestion: str) -> None:
    alike = RowsAlike((("zip", "3011"),), n_agreeing, n_agreeing)
    found = evidence_of(3, "town", "Genf", "Bern", -9.0, alike)
    assert (found.suggestion, found.expected, found.given) == (suggestion, "Bern", ("zip",))


@pytest.mark.parametrize("as_clock", [False, True])
def test_times_that_pass_midnight_are_not_odd(as_clock: bool) -> None:
    rng = np.random.default_rng(4)
    planned = rng.integers(0, 22 * 60, 3_000)
    left = (planned + rng.gamma(2, 10, 3_000).astype(int)) % (24 * 60)
    planned[:25], left[:25] = 24 * 60 - 5, rng.integers(1, 30, 25)
    minutes = {"planned": planned, "left": left}
    columns: dict[str, object] = {n: 100 * (of // 60) + of % 60 for n, of in minutes.items()}
    if as_clock:
        columns = {n: [f"{k // 60:02d}:{k % 60:02d}" for k in of] for n, of in minutes.items()}
    miles = rng.integers(90, 4_000, 3_000)
    result = screen_table(pl.DataFrame(columns | {"miles": miles}), explain=0)
    assert result.findings.n_odd_cells == 0
    # If no flight passes midnight, the order is a rule.
    late = pl.DataFrame(columns | {"miles": miles}).filter(pl.Series(planned <= left))
    rules = screen_table(late, explain=0).findings.rules
    assert [item.rule for item in rules] == ["planned <= left"]
