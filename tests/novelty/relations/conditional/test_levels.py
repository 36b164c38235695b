"""Cells that contradict their row: found, attributed to the right column, and corrected."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.novelty.columns.plan import ColumnSpec, infer_plan
from kpca_apps.novelty.evidence import Evidence
from kpca_apps.novelty.relations.conditional.counts import LevelColumn, Relation, find_relations
from kpca_apps.novelty.relations.conditional.levels import LevelRelations
from kpca_apps.novelty.relations.conditional.writing import Writing, edits
from kpca_apps.system.files.model_files import load_model_file, save_model_file
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.relations.conditional.learned import judged as fit

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def places(cells: tuple[Evidence, ...]) -> set[tuple[int, str]]:
    return {(cell.row, cell.column) for cell in cells}


def words(rng: np.random.Generator, n: int, length: int) -> list[str]:
    return ["".join(word) for word in rng.choice([*LETTERS], (n, length))]


def towns(n: int = 600, seed: int = 0) -> pl.DataFrame:
    """Return customers: a ZIP code has one town, a town has one state, and each recurs."""
    rng = np.random.default_rng(seed)
    names, codes = words(rng, 12, 9), rng.permutation(np.arange(10_000, 99_999))[:30]
    zip_code = rng.integers(0, 30, n)
    town = zip_code % 12
    return pl.DataFrame(
        {
            "zip": [str(codes[place]) for place in zip_code],
            "area": [f"({codes[place] // 7 % 1000:03})" for place in zip_code],
            "town": [names[place].title() for place in town],
            "state": [["Ohio", "Texas", "Maine", "Utah"][place % 4] for place in town],
            "paid": rng.choice(["cash", "card", "none yet"], n),
        }
    )


def changed(frame: pl.DataFrame, row: int, column: str, value: str | None) -> pl.DataFrame:
    cells = frame[column].to_list()
    cells[row] = value
    return frame.with_columns(pl.Series(column, cells))


def tail_left_out(
    rows: list[tuple[str, str]], row: int, m: float, d: float, isolated: float
) -> float:
    """Return the probability of values no likelier than the row's, by loops over the other rows."""
    given, value = rows[row]
    group = Counter(v for g, v in [rows[i] for i in range(len(rows)) if i != row] if g == given)
    if not group:
        return 1.0
    column = Counter(v for _, v in rows)
    rarity = (sum(n for n in column.values() if n <= column[value]) + 1) / (len(rows) + 1)
    as_likely = sum(n for n in group.values() if n <= group[value]) if group[value] else 0
    p = (as_likely + (m + d * len(group)) * rarity) / (group.total() + m)
    most = max(Counter(v for g, v in rows if g == given).values())
    p *= isolated if group[value] == 0 and most > 1 else 1.0
    return min(p, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("uvwxyz")), min_size=3),
    m=st.sampled_from([0.125, 2.0]),
    d=st.sampled_from([0.0, 0.5]),
)
def test_a_row_is_judged_by_all_others(rows: list[tuple[str, str]], m: float, d: float) -> None:
    frame = pl.DataFrame(rows, schema=["given", "value"], orient="row")
    table = table_from_frame(frame, "table")
    columns = [
        LevelColumn.of(table.column[name], ColumnSpec(name, "categorical", ""))
        for name in frame.columns
    ]
    codes = [column.cells(table).codes for column in columns]
    pairs, counts = np.unique(codes[0] * columns[1].n_codes + codes[1], return_counts=True)
    relation = Relation(0, 1, columns[1].n_codes, m, d, 1.0, pairs, counts)
    judged = relation.judge(columns, codes, np.ones(len(rows), dtype=bool))
    wanted = [tail_left_out(rows, row, m, d, relation.isolated) for row in range(len(rows))]
    np.testing.assert_allclose(np.exp(judged.log_p), wanted, rtol=1e-12)
    for row, (item, _) in enumerate(rows):
        group = Counter(v for i, (g, v) in enumerate(rows) if g == item and i != row)
        assert judged.n_rows[row] == group.total()
        assert judged.n_expected[row] == max(group.values(), default=0)
        if group:
            assert group[columns[1].text(int(judged.expected[row]))] == judged.n_expected[row]
        # A row that is not left out counts itself.
        new = relation.judge(columns, [column[[row]] for column in codes], np.zeros(1, dtype=bool))
        assert new.n_rows[0] == group.total() + 1


def test_the_prior_is_that_of_most_likelihood_of_left_out_rows() -> None:
    frame = changed(towns(200), 3, "town", "Elsewhere")[["zip", "town"]]
    table = table_from_frame(frame, "table")
    columns = [LevelColumn.of(table.column[s.name], s) for s in infer_plan(table).specs]
    codes = [column.cells(table).codes for column in columns]
    (relation,) = (r for r in find_relations(columns, codes) if r.target == 1)
    rows = frame.rows()

    def gain(m: float, d: float) -> float:
        total = 0.0
        for row, (zip_code, value) in enumerate(rows):
            others = rows[:row] + rows[row + 1 :]
            q = (sum(v == value for _, v in others) + 0.5) / (
                len(others) + 0.5 * (columns[1].n_codes + 1)
            )
            group = Counter(v for g, v in others if g == zip_code)
            if group:
                new = (m + d * len(group)) * q
                p = (max(group[value] - d, 0.0) + new) / (group.total() + m)
                total += math.log(p / q)
        return total / len(rows)

    assert relation.gain == pytest.approx(gain(relation.shrinkage, relation.discount), rel=1e-9)
    assert relation.gain >= max(gain(m, 0.0) for m in (0.03125, 0.125, 0.5, 2.0, 8.0)) - 1e-9


def test_a_value_from_another_row_is_reported_with_a_suggestion() -> None:
    frame = towns()
    meant = frame["town"][7]
    other = next(town for town in frame["town"] if town != meant)
    learned, judged = fit(changed(frame, 7, "town", other))
    (cell,) = judged.cells
    assert (cell.row, cell.column, cell.seen, cell.expected) == (7, "town", other, meant)
    assert judged.surprise.argmax() == 7
    assert cell.log_p < np.log(0.01 * learned.n_looked)
    # All other rows with row 7's value of column `by` have the town expected in row 7.
    (by,) = cell.given
    n_others = (frame[by] == frame[by][7]).sum() - 1
    assert cell.support == n_others
    assert cell.sentence.startswith(f"{n_others} of the {n_others} other rows with")


def test_of_two_cells_that_disagree_the_one_more_columns_contradict_is_wrong() -> None:
    frame = towns()
    other = next(i for i in range(600) if frame["state"][i] != frame["state"][7])
    _, judged = fit(changed(frame, 7, "zip", frame["zip"][other]))
    assert places(judged.cells) == {(7, "zip")}
    both = changed(changed(frame, 7, "zip", frame["zip"][other]), 90, "state", "Guam")
    assert places(fit(both)[1].cells) == {(7, "zip"), (90, "state")}


def test_of_two_columns_alone_either_may_be_wrong() -> None:
    code = np.arange(400) % 8
    frame = pl.DataFrame(
        {
            "code": [f"{'ABCDEFGH'[c]}x" for c in code],
            "name": [
                ["Ash", "Birch", "Cedar", "Elm", "Fir", "Larch", "Oak", "Pine"][c] for c in code
            ],
        }
    )
    assert fit(frame)[1].cells == ()
    (cell,) = fit(changed(frame, 8, "name", "Pine"))[1].cells
    assert (cell.row, {cell.column, *cell.others}) == (8, {"code", "name"})
    assert cell.suggestion == ""
    # If two pairs of columns contradict each other, either pair may be wrong.
    levels = np.random.default_rng(0).integers(0, 6, 900).tolist()
    levels[8] = 0
    pairs = pl.DataFrame({name: [f"{name}{level}" for level in levels] for name in "abcd"})
    pairs = changed(changed(pairs, 8, "c", "c2"), 8, "d", "d2")
    assert fit(pairs)[1].cells == ()
    # A value that occurs nowhere else is the wrong one.
    assert places(fit(changed(frame, 8, "name", "Qqq"))[1].cells) == {(8, "name")}


def test_misspellings_are_corrected_by_their_row_however_many_there_are() -> None:
    frame, rng = towns(800, seed=1), np.random.default_rng(1)
    wrong = {}
    for row in rng.permutation(800)[:80].tolist():
        letters = [*frame["town"][row]]
        letters[rng.integers(1, len(letters))] = rng.choice([*LETTERS])
        if "".join(letters) != frame["town"][row]:
            wrong[row] = frame["town"][row]
            frame = changed(frame, row, "town", "".join(letters))
    found = {cell.row: cell for cell in fit(frame)[1].cells}
    assert {*found} <= {*wrong} and len(found) > 0.95 * len(wrong)
    for row, cell in found.items():
        assert cell.expected == wrong[row]


def test_a_missing_cell_is_named_where_its_rows_have_one_value() -> None:
    frame = towns()
    found = [cell for cell in fit(changed(frame, 7, "town", ""))[1].cells if cell.row == 7]
    assert [(cell.column, cell.seen, cell.expected) for cell in found] == [
        ("town", "", frame["town"][7])
    ]
    assert fit(changed(frame, 7, "paid", ""))[1].cells == ()


def test_what_is_odd_by_rule_is_not_named() -> None:
    frame = towns(800, seed=2)
    # One shop spells all towns differently.
    shop = np.random.default_rng(0).integers(0, 25, 800)
    town = [f"{t} {s}" if s == 0 else t for t, s in zip(frame["town"], shop, strict=True)]
    frame = frame.with_columns(
        pl.Series("town", town), pl.Series("shop", [f"shop {s}" for s in shop])
    )
    assert fit(frame)[1].cells == ()


@pytest.mark.parametrize("seed", range(20))
def test_shuffled_columns_say_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([150, 600, 2_000]))
    columns = {}
    for place in range(8):
        k = int(rng.choice([2, 6, 40, 300]))
        share = 1.0 / np.arange(1, k + 1) ** rng.choice([0.0, 1.0, 3.0])
        columns[f"c{place}"] = rng.choice(words(rng, k, 6), n, p=share / share.sum())
    learned, judged = fit(pl.DataFrame(columns))
    assert judged.cells == () and learned.exceptions == ()
    for s in (1.0, 2.0, 3.0):
        assert (judged.surprise > s).mean() <= math.exp(-s) + 0.02


def test_the_order_of_rows_and_the_names_of_levels_do_not_matter() -> None:
    frame = changed(changed(towns(), 7, "state", "Guam"), 30, "town", "Wrongtown")
    learned, judged = fit(frame)
    order = np.random.default_rng(0).permutation(frame.height)
    _, of_others = fit(frame[order])
    np.testing.assert_allclose(of_others.surprise, judged.surprise[order], atol=1e-12)
    assert {(int(order[row]), name) for row, name in places(of_others.cells)} == places(
        judged.cells
    )
    # Rename levels of text columns only: numbers with a "!" would become categories.
    renamed = frame.with_columns(
        pl.col(name).map_elements(lambda text: text[::-1] + "!", return_dtype=pl.String)
        for name in ("town", "state", "paid")
    )
    np.testing.assert_allclose(fit(renamed)[1].surprise, judged.surprise, atol=1e-12)
    assert places(fit(renamed)[1].cells) == places(judged.cells) != set()
    assert len(learned.relations) == len(fit(renamed)[0].relations)


def test_new_rows_are_judged_one_by_one_and_own_rows_as_if_left_out(tmp_path: Path) -> None:
    frame = changed(changed(towns(), 7, "state", "Guam"), 30, "town", "Wrongtown")
    learned, judged = fit(frame)
    path = tmp_path / "relations.kpca"
    save_model_file(path, "relations", learned)
    kept = load_model_file(path, "relations", LevelRelations, "relations")
    again = kept.judge(table_from_frame(frame, "t"), own=np.ones(600, dtype=bool))
    np.testing.assert_array_equal(again.surprise, judged.surprise)
    assert again.cells == judged.cells
    new = changed(towns(), 11, "state", "Ontario")
    whole = kept.judge(table_from_frame(new, "t"))
    assert (11, "state") in places(whole.cells)
    part = kept.judge(table_from_frame(new[10:13], "t"))
    np.testing.assert_array_equal(part.surprise, whole.surprise[10:13])
    assert {(row + 10, name) for row, name in places(part.cells)} == {(11, "state")}


def test_words_for_true_and_false_are_one_in_any_case_and_shown_as_they_stand() -> None:
    frame = towns()
    yes = ["Yes" if state == "Ohio" else "no" for state in frame["state"]]
    yes[4] = yes[4].upper()
    wrong = next(i for i, state in enumerate(frame["state"]) if state == "Texas" and i > 50)
    yes[wrong] = "YES"
    (cell,) = fit(frame.with_columns(pl.Series("northern", yes)))[1].cells
    assert (cell.row, cell.column, cell.seen, cell.expected) == (wrong, "northern", "YES", "no")


def test_tables_with_nothing_to_count() -> None:
    for frame in (
        pl.DataFrame({"a": ["x", "y", "z"], "b": [1.5, 2.5, 3.25]}),
        pl.DataFrame({"a": ["x"] * 5, "b": ["u", "v", "u", "v", "u"]}),
    ):
        learned, judged = fit(frame)
        assert learned.relations == () and judged.cells == ()
        assert not judged.surprise.any()


def test_likeness_is_the_share_of_others_as_close() -> None:
    texts = ["10035", "10053", "20099", "birmingham", "huntsville"]
    writing = Writing(texts, np.array([50, 50, 50, 50, 50]))
    # Likeness is log((c + 0.1) / 5), where c is the number of values in `texts` that count as close
    # to the expected value as the text is. Numbers and texts that are not close have likeness 0. No
    # value in `texts` has an x, so no value counts as close as a text with an x: c = 0.
    assert writing.likeness("10033", 1, 0) == 0.0
    assert writing.likeness("100x5", 1, 0) == pytest.approx(math.log(0.1 / 5))
    assert writing.likeness("birmingxam", 1, 3) == pytest.approx(math.log(0.1 / 5))
    assert writing.likeness("mobile", 1, 3) == 0.0 and writing.likeness("birmingxam", 60, 3) == 0.0


def test_what_is_numbered_is_not_misspelt() -> None:
    texts = ["Fenway Park II", "Lithograph on paper", "172 Bay Street"]
    writing = Writing(texts, np.array([50, 50, 50]))
    assert writing.likeness("Fenway Park I", 1, 0) == 0.0
    assert writing.likeness("2 lithographs on paper", 1, 1) == 0.0
    assert writing.likeness("Litograph on paper", 1, 1) < 0
    assert writing.likeness("1x2 Bay Street", 1, 2) < 0


@given(a=st.text("abcd", max_size=6), b=st.text("abcd", max_size=6), most=st.integers(0, 7))
def test_edits_are_what_the_textbook_counts(a: str, b: str, most: int) -> None:
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    assert edits(a, b, most) == min(table[-1][-1], most + 1)


def test_numbers_are_levels_by_their_value() -> None:
    size = np.random.default_rng(2).integers(1, 9, 400)
    frame = pl.DataFrame({"size": map(str, size), "price": [f"{3 * k}.50" for k in size]})
    table = table_from_frame(frame, "sizes")
    learned = LevelRelations.learn(table, infer_plan(table))
    again = pl.DataFrame({"size": [f"{k}.0" for k in size], "price": [f"{3 * k}.5" for k in size]})
    judged, other = (learned.judge(table_from_frame(data, "sizes")) for data in (frame, again))
    np.testing.assert_array_equal(judged.surprise, other.surprise)
    assert other.cells == ()


def test_legitimate_exceptions_are_not_reported() -> None:
    """First names imply a gender; some go with both, so single exceptions are not reported."""
    rng = np.random.default_rng(3)
    n, names = 6_000, words(rng, 200, 7)
    first = rng.choice(len(names), n)
    usual, is_both = rng.random(len(names)) < 0.5, rng.random(len(names)) < 0.3
    share = np.where(is_both, rng.beta(0.5, 3.0, len(names)), 0.0)
    is_woman = usual[first] ^ (rng.random(n) < share[first])
    frame = pl.DataFrame(
        {
            "first": [names[place].title() for place in first],
            "gender": np.where(is_woman, "woman", "man"),
            "shoe": [f"EU {size}" for size in rng.integers(36, 47, n)],
        }
    )
    assert fit(frame)[1].cells == ()
    # If every first name has one gender only, a single exception is wrong.
    plain = frame.with_columns(gender=np.where(usual[first], "woman", "man"))
    other = "man" if usual[first[5]] else "woman"
    assert places(fit(changed(plain, 5, "gender", other))[1].cells) == {(5, "gender")}


def test_a_cell_that_contradicts_all_others_is_wrong_itself() -> None:
    """An item determines three columns: a wrong item is one fault, not three."""
    rng = np.random.default_rng(4)
    n, items = 2_000, [f"item {a}{b}{c}" for a in "PQ" for b in "RST" for c in "XYZ"]
    place = rng.integers(0, 18, n)
    frame = pl.DataFrame(
        {
            "item": [items[k] for k in place],
            "mode": [["want", "need"][k // 9] for k in place],
            "kind": [["red", "green", "blue"][k // 3 % 3] for k in place],
            "site": [["north", "south", "west"][k % 3] for k in place],
        }
    )
    wrong = (int(place[9]) + 13) % 18  # a different mode, kind and site
    assert places(fit(changed(frame, 9, "item", items[wrong]))[1].cells) <= {(9, "item")}


def test_recurring_values_are_no_misspellings() -> None:
    """Five cells have "ER" after the name of a model: a variant that recurs is no misspelling."""
    rng = np.random.default_rng(5)
    models = np.array([f"{word} {number}" for word in words(rng, 10, 6) for number in "123"])
    place = rng.integers(0, 30, 1_500)
    names = models[place]
    names[np.flatnonzero(place == 4)[:5]] += "ER"
    frame = pl.DataFrame({"model": names, "seats": [f"{100 + 3 * k} seats" for k in place]})
    assert fit(frame)[1].cells == ()


@pytest.mark.parametrize(("n", "is_named"), [(1, True), (8, False)])
def test_only_far_rarer_levels_are_misspellings(n: int, is_named: bool) -> None:
    """A club's former name, used for years, is not a misspelling of the later name."""
    rng = np.random.default_rng(6)
    grounds, clubs = words(rng, 20, 9), words(rng, 20, 9)
    place = np.arange(800) % 20
    names = np.array([f"{clubs[k].title()} Brewers" for k in place])
    rows = np.flatnonzero(place == 3)[:n]
    names[rows] = f"{clubs[3].title()} Braves"
    frame = pl.DataFrame({"club": names, "ground": [grounds[k].title() for k in place]})
    assert places(fit(frame)[1].cells) == ({(row, "club") for row in rows} if is_named else set())


@pytest.mark.parametrize(("n", "is_named"), [(5, False), (7, True)])
def test_fewer_than_five_rows_say_nothing_of_another(n: int, is_named: bool) -> None:
    frame = towns()
    of_one = pl.DataFrame({"zip": ["98765"] * n, "town": ["Weston"] * n})
    of_one = of_one.with_columns(area=pl.lit("(987)"), state=pl.lit("Iowa"), paid=pl.lit("cash"))
    frame = pl.concat([frame, of_one.select(frame.columns)])
    misspelt = changed(frame, 600, "town", "Wexton")
    assert ((600, "town") in places(fit(misspelt)[1].cells)) == is_named


@pytest.mark.parametrize(("n", "n_named"), [(3, 3), (40, 0)])
def test_dates_that_often_differ_are_no_errors(n: int, n_named: int) -> None:
    """Most interviews end on the day they begin."""
    rng = np.random.default_rng(8)
    day = np.datetime64("2024-03-01") + rng.integers(0, 40, 1_200)
    end = day.copy()
    end[:n] += rng.integers(2, 30, n)
    frame = pl.DataFrame({"begin": day, "end": end, "place": rng.choice([*"abc"], 1_200)})
    assert len({cell.row for cell in fit(frame)[1].cells}) == n_named


def test_p_values_of_clean_rows_are_calibrated() -> None:
    """The smaller of a row's p-values, of numbers and of categories, is corrected for two tests."""
    rng = np.random.default_rng(0)
    n = 2_000
    kind = rng.integers(0, 5, n)
    columns = {f"x{i}": (kind * (i + 1) / 2 + rng.normal(size=n)).round(3) for i in range(4)}
    for i in range(4):
        seen = np.where(rng.random(n) < 0.7, kind, rng.integers(0, 5, n))
        columns[f"c{i}"] = np.array([f"v{value}" for value in seen])
    learned, verdict = fit(pl.DataFrame(columns))
    assert learned.relations
    for share in (0.1, 0.03):
        # Allow three standard deviations above the share (binomial, n rows).
        allowed = share + 3 * np.sqrt(share * (1 - share) / n)
        assert (verdict.surprise >= -np.log(share)).mean() <= allowed


@pytest.mark.parametrize(
    "values", [["10", "20"], ["3.5 kg", "4 kg"], ["2024-05-01", "2024-06-01"], ["ash", "oak"]]
)
def test_what_says_that_a_value_is_missing_is_a_missing_cell(values: list[str]) -> None:
    table = table_from_frame(pl.DataFrame({"x": [*values * 40, "Unknown", "unknown", None]}))
    spec = infer_plan(table).specs[0]
    column = LevelColumn.of(table.column["x"], spec)
    assert (column.texts, column.counts.tolist()) == (tuple(values), [40, 40, 3])
    assert column.cells(table).codes.tolist() == [0, 1] * 40 + [column.missing] * 3
