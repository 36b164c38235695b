import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cdist

from kpca_apps.novelty.detector import nearest as compiled
from kpca_apps.novelty.detector import neighbours as of_neighbours
from kpca_apps.novelty.detector.neighbours import (
    AGREEING,
    NO_SET,
    NeighbourRows,
    Surroundings,
    nearest_rows,
    rows_without_strays,
)
from kpca_apps.novelty.detector.reasons import Attribution
from kpca_apps.novelty.findings.listed_rows import RowsToExplain, _first_set, explain_rows
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.tables.frames import table_from_frame
from tests.novelty.tables import correlated

NONE = np.array([], dtype=np.int64)
# Passengers of the Titanic (British Board of Trade, 1912): died and survived, by class, sex, age.
TITANIC = {
    ("1st", "Male", "Child"): (0, 5),
    ("1st", "Female", "Child"): (0, 1),
    ("1st", "Male", "Adult"): (118, 57),
    ("1st", "Female", "Adult"): (4, 140),
    ("2nd", "Male", "Child"): (0, 11),
    ("2nd", "Female", "Child"): (0, 13),
    ("2nd", "Male", "Adult"): (154, 14),
    ("2nd", "Female", "Adult"): (13, 80),
    ("3rd", "Male", "Child"): (35, 13),
    ("3rd", "Female", "Child"): (17, 14),
    ("3rd", "Male", "Adult"): (387, 75),
    ("3rd", "Female", "Adult"): (89, 76),
    ("Crew", "Male", "Adult"): (670, 192),
    ("Crew", "Female", "Adult"): (3, 20),
}


def neighbours(rows, as_is=NONE):
    return NeighbourRows(rows, rows, as_is, np.arange(len(rows)))


def singles(d):
    return [np.array([j]) for j in range(d)]


def expected_by_hand(rows, row, column):
    others = np.delete(np.arange(rows.shape[1]), column)
    distance = ((rows[:, others] - row[others]) ** 2).sum(axis=1)
    return np.median(rows[np.argsort(distance)[:10], column])


def reasons_of(X, scores, score, rows, groups=None, *, own=-1, as_is=NONE, typical=0.0):
    """Return reasons for rows with these scores; `score` is applied to changed copies of a row."""
    own, groups = np.full(len(X), own), groups or singles(X.shape[1])

    def of_copies(copies, row):
        return np.where((copies == X[row]).all(axis=1), scores[row], score(copies))

    around = Surroundings(neighbours(rows, as_is), groups)
    return Attribution(X, X, of_copies, around, own, typical).explain()


def expected(rows, row, groups, own=-1, as_is=NONE):
    """Return each group's expected value; replacing any group's cells makes the score 0."""
    (drops,) = reasons_of(
        row[None], np.ones(1), lambda copies: np.zeros(len(copies)), rows, groups,
        own=own, as_is=as_is, typical=1.0,
    )  # fmt: skip
    return {drop.group: drop.expected.tolist() for drop in drops}


def test_expected_values_are_medians_over_rows_near_in_the_other_columns():
    rng = np.random.default_rng(0)
    rows, row = rng.normal(size=(200, 4)), rng.normal(size=4)
    by_hand = {j: [expected_by_hand(rows, row, j)] for j in range(4)}
    assert expected(rows, row, singles(4)) == by_hand


def test_a_huge_value_does_not_drown_the_distances_of_the_others():
    rows = np.random.default_rng(1).normal(size=(200, 3))
    row = np.array([1e12, 0.0, 0.0])
    assert expected(rows, row, singles(3))[0] == [expected_by_hand(rows, row, 0)]


@pytest.mark.parametrize("n_rows", [5, 100, 2_475])
@pytest.mark.parametrize("ties", [False, True])
def test_the_nearest_rows_are_the_first_of_all_sorted(n_rows, ties):
    rng = np.random.default_rng(0)
    distances = rng.gamma(2.0, size=(13, n_rows))
    if ties:
        distances = np.round(distances)  # many rows are equally near
        distances[6:] = distances[6:] * 1e3 + rng.uniform(size=(7, n_rows)).round(2)
    distances[3, 1] = np.inf
    nearest = nearest_rows(distances)
    k = min(10, n_rows - 1)
    assert nearest.shape == (13, k)
    assert all(len({*line}) == k for line in nearest.tolist())
    chosen = np.sort(np.take_along_axis(distances, nearest, axis=1), axis=1)
    np.testing.assert_array_equal(chosen, np.sort(distances, axis=1)[:, :k])


def nearest_by_sorting(
    lines,
    line_of,
    column_of,
    level_of,
    of_levels,
    rows,
    own,
    sets,
    largest,
    nearest,
    radius,
):
    """Find the nearest rows as `nearest_without` does, but by sorting all distances."""
    for i, row in enumerate(rows):
        parts = [
            (lines[line] - row[column]) ** 2 if line >= 0 else of_levels[i][level_of[-1 - line]]
            for line, column in zip(line_of, column_of, strict=True)
        ]
        for e, members in enumerate(sets[i]):
            if members[0] == NO_SET:
                continue
            distances = np.zeros(lines.shape[1])
            most = 1.0 if members[0] == AGREEING else largest
            for g in np.setdiff1d(np.arange(len(parts)), members):  # sum in a fixed order
                distances += np.minimum(parts[g], most)
            if own[i] >= 0:
                distances[own[i]] = np.inf
            nearest[i, e] = np.argsort(distances, kind="stable")[: nearest.shape[2]]
            radius[i, e] = distances[nearest[i, e]].mean()


def sort_for_nearest(monkeypatch):
    monkeypatch.setattr(of_neighbours, "FEW_ROWS", 0)
    monkeypatch.setattr(compiled, "nearest_without", nearest_by_sorting)


@pytest.mark.parametrize("few_rows", [0, 10_000])
@pytest.mark.parametrize("n_rows", [12, 83, 2_003])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e5, 1e20])
def test_the_nearest_rows_without_a_set_are_those_by_its_other_groups(
    few_rows, n_rows, size, monkeypatch
):
    monkeypatch.setattr(of_neighbours, "FEW_ROWS", few_rows)
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=(n_rows, 4))
    numbers[n_rows // 2 :] = np.round(numbers[n_rows // 2 :])  # rounding makes many distances equal
    levels, dates = 0.7 * np.eye(3)[rng.integers(0, 3, n_rows)], rng.normal(size=(n_rows, 2))
    reference = np.hstack([numbers[:, :2], levels, dates, numbers[:, 2:]])
    groups = [np.array(g) for g in ([0], [1], [2, 3, 4], [5, 6], [7], [8])]
    rows = reference[rng.integers(0, n_rows, 5)] + rng.normal(scale=0.3, size=(5, 9)).round(1)
    rows[:, 7] *= size  # a group whose distances dwarf those of all other groups
    around = Surroundings(neighbours(reference), groups)
    none = [[-1, -1, -1], [4, -1, -1], [0, 4, -1], [1, 2, 3], [5, -1, -1], [3, -1, -1]]
    sets = np.tile(np.array([*none, [AGREEING, -1, -1], [NO_SET, -1, -1]]), (5, 1, 1))
    own = np.array([7, -1, 0, -1, 3])
    nearby = around.near(rows, own, sets)
    sort_for_nearest(monkeypatch)
    by_hand = around.near(rows, own, sets)
    np.testing.assert_allclose(nearby.radius, by_hand.radius, rtol=1e-12)
    # At size 1e20, a sum of squared distances that includes group 4 (column 7) loses the distances
    # in all other groups to rounding. Then the nearest rows are arbitrary and are not compared.
    seen = [1, 2, 6, 7] if size == 1e20 else slice(None)
    nearest, sorted_ones = (np.sort(near.nearest[:, seen], axis=2) for near in (nearby, by_hand))
    np.testing.assert_array_equal(nearest, sorted_ones)


@pytest.mark.filterwarnings("error")
def test_a_distance_whose_square_no_number_holds_is_the_largest():
    reference = np.random.default_rng(4).normal(size=(30, 3))
    around = Surroundings(neighbours(reference), [np.array([0]), np.array([1, 2])])
    far = np.array([[0.0, 1e200, 0.0], [0.0, 1e150, 0.0]])
    sets = np.array([[[0], [NO_SET]]] * 2)
    nearby = around.near(far, np.array([-1, -1]), sets)
    np.testing.assert_array_equal(nearby.nearest[0], nearby.nearest[1])


def test_groups_should_read_the_medians_or_the_most_frequent_level():
    rng = np.random.default_rng(8)
    rows = np.hstack([rng.normal(size=(40, 3)), 0.7 * np.eye(4)[rng.integers(0, 4, 40)]])
    own, columns = rng.normal(size=(2, 7)), np.arange(7)
    reference = NeighbourRows(rows, 2.0 * rows, columns[3:], np.arange(40))
    around = Surroundings(reference, [columns[:1], columns[1:3], columns[3:]])
    group_of, of_row = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 1])
    lines = rng.integers(0, 40, size=(4, 9))
    expected_values = around.expected(own, of_row, group_of, lines)
    of_group = [columns[:1], columns[1:3], columns[3:], columns[3:]]
    middles = [
        np.median(rows[line][:, group], axis=0) for line, group in zip(lines, of_group, strict=True)
    ]
    levels = [0.7 * np.eye(4)[rows[line, 3:].sum(axis=0).argmax()] for line in lines[2:]]
    np.testing.assert_allclose(expected_values.values, np.concatenate([*middles[:2], *levels]))
    off = [
        np.abs(2.0 * middle - own[i, group]).sum()
        for middle, i, group in zip(middles, of_row, of_group, strict=True)
    ]
    np.testing.assert_allclose(expected_values.distances, off)


@pytest.mark.parametrize("kind", ["usual", "gross", "categories"])
def test_reasons_of_many_rows_are_those_of_each_row_by_sorted_neighbours(kind, monkeypatch):
    rng = np.random.default_rng(4)
    rows, X = stones(400, rng), stones(20, rng)
    X[np.arange(20), np.arange(20) % 7] += rng.normal(scale=4.0, size=20)
    X[:7, 4:] = -6.0
    if kind == "gross":
        X[::3, 1] = 1e9
    if kind == "categories":
        rows, X = np.round(rows), np.round(X)
    together = explained(rows, X, np.sqrt)
    sort_for_nearest(monkeypatch)
    for row, reasons in zip(X, together, strict=True):
        (alone,) = explained(rows, row[None], np.sqrt)
        assert [drop.group for drop in reasons] == [drop.group for drop in alone]
        assert [drop.together for drop in reasons] == [drop.together for drop in alone]
        for reason, other in zip(reasons, alone, strict=True):
            assert reason.share == pytest.approx(other.share, rel=1e-9)
            np.testing.assert_array_equal(reason.expected, other.expected)


def test_a_row_is_not_its_own_neighbour():
    rows = np.random.default_rng(2).normal(size=(11, 2))
    rows[4] = [50.0, 0.0]
    assert expected(rows, rows[4], singles(2), own=4)[0] == [np.median(np.delete(rows[:, 0], 4))]


def test_a_category_is_replaced_by_the_most_frequent_level():
    levels = np.array([0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2])
    rows = np.column_stack([np.eye(3)[levels] * 0.7, np.zeros(11)])
    groups, as_is = [np.array([0, 1, 2]), np.array([3])], np.array([0, 1, 2])
    assert expected(rows, rows[0], groups, own=0, as_is=as_is)[0] == [0.0, 0.7, 0.0]


def test_a_lone_column_is_compared_with_all_rows():
    assert expected(np.arange(21.0)[:, None], np.array([99.0]), singles(1)) == {0: [10.0]}


def test_shares_are_drops_over_their_sum_in_order():
    rows = np.zeros((20, 3))
    X = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]])

    def score(candidates):
        return np.abs(candidates).sum(axis=1)

    first, second = reasons_of(X, score(X), score, rows)
    assert [(drop.group, drop.share) for drop in first] == [(0, 0.75), (2, 0.25)]
    assert (first[0].seen[0], first[0].expected[0]) == (3.0, 0.0)
    assert second == ()


def test_rows_are_explained_alike_in_any_batch():
    rng = np.random.default_rng(3)
    rows, X = rng.normal(size=(60, 3)), rng.normal(size=(3000, 3)) * 3

    def score(candidates):
        return (candidates**2).sum(axis=1)

    together, (alone,) = (reasons_of(part, score(part), score, rows) for part in (X, X[2990:2991]))
    assert [d.share for d in alone] == [d.share for d in together[2990]]


def test_of_many_columns_the_farthest_from_expected_are_tried():
    rows = np.random.default_rng(4).normal(size=(50, 200))
    X = np.zeros((1, 200))
    X[0, [3, 150]] = 9.0, -8.0
    sizes = []

    def score(candidates):
        sizes.append(len(candidates))
        return (candidates**2).sum(axis=1)

    (reasons,) = reasons_of(X, (X**2).sum(axis=1), score, rows)
    assert [drop.group for drop in reasons[:2]] == [3, 150]
    assert sizes[0] == max(sizes) == 1 + 64


def explained(rows, X, score):
    """Explain rows scored by `score` of the mean squared distance to the ten nearest of `rows`."""

    def of_rows(candidates):
        nearest = np.partition(cdist(candidates, rows, "sqeuclidean"), 10, axis=1)[:, :10]
        return score(nearest.mean(axis=1))

    typical = np.quantile(of_rows(rows), 0.9)
    return reasons_of(X, of_rows(X), of_rows, rows, typical=typical)


SCORES = [
    pytest.param(np.sqrt, id="grows with distance"),
    pytest.param(lambda squares: 1 - np.exp(-squares), id="saturates"),
]


def stones(n, rng):
    """Return weight, price, two unrelated columns, and three sizes that follow the weight."""
    weight = rng.normal(size=n)
    sizes = weight[:, None] + 0.05 * rng.normal(size=(n, 3))
    price = weight + 0.2 * rng.normal(size=n)
    return np.column_stack([weight, price, rng.normal(size=(n, 2)), sizes])


@pytest.mark.parametrize("score", SCORES)
def test_three_wrong_columns_are_reported_together(score):
    rng = np.random.default_rng(5)
    rows, X = stones(1500, rng), stones(12, rng)
    X[:, 4:] = -6.0
    for reasons in explained(rows, X, score):
        assert {drop.group for drop in reasons[:3]} == {4, 5, 6}
        assert [drop.together for drop in reasons[:3]] == [(4, 5, 6)] * 3
        assert len({drop.share for drop in reasons[:3]}) == 1
        assert sum(drop.share for drop in reasons) == pytest.approx(1.0)


@pytest.mark.parametrize("score", SCORES)
def test_exchanged_columns_are_reported_together(score):
    rng = np.random.default_rng(6)
    low, high = rng.normal(size=(2, 1500))
    rows = np.column_stack([low, high, low, high, low, high])
    rows += 0.1 * rng.normal(size=rows.shape)
    X = np.array([[-2.0, 2.0, 2.0, -2.0, -2.0, 2.0], [1.5, -2.0, -2.0, 1.5, 1.5, -2.0]])
    for reasons in explained(rows, X, score):
        assert {drop.group for drop in reasons[:2]} == {2, 3}
        assert reasons[0].together == (2, 3)


@pytest.mark.parametrize("score", SCORES)
def test_one_wrong_column_is_reported_alone(score):
    rng = np.random.default_rng(7)
    rows, X = stones(1500, rng), stones(14, rng)
    wrong = np.arange(14) % 7
    X[np.arange(14), wrong] += 9.0
    for reasons, column in zip(explained(rows, X, score), wrong, strict=True):
        assert (reasons[0].group, reasons[0].together) == (column, ())


def test_the_farthest_column_is_reported_where_no_drop_tells():
    rows = np.random.default_rng(8).normal(size=(100, 3))
    X = np.array([[0.0, 7.0, 0.0]])
    (reasons,) = reasons_of(X, np.ones(1), lambda copies: np.ones(len(copies)), rows, typical=0.5)
    assert [(drop.group, drop.share) for drop in reasons] == [(1, 0.0)]


def test_a_rare_kind_of_rows_stays_and_strays_go():
    rng = np.random.default_rng(9)
    usual, rare = rng.normal(size=(2000, 4)), 9 + 0.5 * rng.normal(size=(60, 4))
    rows = np.vstack([usual, rare, rng.uniform(-40, 40, size=(30, 4))])
    kept = rows_without_strays(rows, np.linalg.norm(rows, axis=1), n_novel=100)
    assert np.isin(np.arange(2000, 2060), kept).mean() > 0.9
    assert np.isin(np.arange(2060, 2090), kept).mean() < 0.1


def test_women_of_first_class_are_not_reported_that_they_should_have_died():
    rows = [
        (*who, survived)
        for who, counts in TITANIC.items()
        for survived, count in zip(("no", "yes"), counts, strict=True)
        for _ in range(count)
    ]
    frame = pl.DataFrame(rows, schema=["class", "sex", "age", "survived"], orient="row")
    result, model = screen(table_from_frame(frame))
    saved = np.array(
        [place for place, row in enumerate(rows) if row[:3] == ("1st", "Female", "Adult")]
    )
    saved = saved[[rows[place][3] == "yes" for place in saved]][::20]
    women = table_from_frame(frame[saved.tolist()])
    rows = RowsToExplain(women, model.encoder.matrix(women), saved)
    explained = explain_rows(rows, model.encoder, model.detector)
    assert all(reason.column != "survived" for reasons in explained for reason in reasons)
    # Of each group with 1 to 5 % of the rows, at least 80 % are kept to give expected values.
    kept = frame[model.detector.neighbours.index.tolist()].group_by(frame.columns).len()
    small = frame.group_by(frame.columns).len().filter(pl.col("len").is_between(22, 110))
    both = small.join(kept, on=frame.columns, how="left")
    assert (both["len_right"].fill_null(0) >= 0.8 * both["len"]).all()
    assert result.n_flagged


def test_every_flagged_row_has_a_reason_however_few_are_requested():
    few = screen(correlated(400), options=ScreeningOptions(explain=3, count=120))[0]
    assert [row.explained for row in few.ranked] == [row.flagged for row in few.ranked]
    assert (len(few.ranked), few.run.settings["rows explained"]) == (120, 120)
    assert all(row.reasons for row in few.ranked)


def test_stones_without_size_are_reported_by_their_three_lengths():
    rng = np.random.default_rng(0)
    carat = rng.gamma(3.0, 0.3, 1500) + 0.2
    length = 6.4 * np.cbrt(carat)
    sizes = {
        name: share * length * (1 + 0.01 * rng.normal(size=1500))
        for name, share in (("x", 1.0), ("y", 1.0), ("z", 0.62))
    }
    price = 4000 * carat**1.6 * (1 + 0.1 * rng.normal(size=1500))
    cut = rng.choice(["Fair", "Good", "Ideal"], 1500)
    frame = pl.DataFrame({"carat": carat, "cut": cut, "price": price.round(), **sizes})
    wrong = carat.argsort()[[200, 500, 800, 1100, 1400]].tolist()
    zero = pl.Series(np.isin(np.arange(1500), wrong))
    frame = frame.with_columns(
        pl.when(zero).then(0.0).otherwise(pl.col(name)).alias(name) for name in ("x", "y", "z")
    )
    result = screen(table_from_frame(frame))[0]
    stones = [row for row in result.ranked if row.row - 1 in wrong]
    assert len(stones) == 5
    for row in stones:
        assert {reason.column for reason in row.reason_sets[0]} == {"x", "y", "z"}
        assert all(reason.together == ("x", "y", "z") for reason in row.reason_sets[0])
    assert '5 rows: "x", "y" and "z" are 0, far from all others.' in [
        p.sentence for p in result.findings.patterns
    ]
    kinds = [row.kind_of_reason for row in result.oddest_of_each_kind]
    assert kinds.count((("x", "below"), ("y", "below"), ("z", "below"))) == 1


def test_the_first_reason_is_that_of_the_full_explanation():
    rng = np.random.default_rng(11)
    frame = pl.DataFrame(stones(600, rng).round(2), schema=list("abcdefg"), orient="row")
    wrong = frame[:40].with_columns(e=pl.lit(-6.0), f=pl.lit(-6.0), g=pl.lit(-6.0))
    gaps = frame[40:60].with_columns(b=pl.lit(None, dtype=pl.Float64), a=pl.lit(9.0))
    table = table_from_frame(pl.concat([wrong, gaps, frame[60:]]))
    model = screen(table)[1]
    rows = RowsToExplain(table, model.encoder.matrix(table), np.arange(600))
    full = explain_rows(rows, model.encoder, model.detector)
    together = 0
    for all_of in full:
        names = all_of[0].together or (all_of[0].column,) if all_of else ()
        assert _first_set(all_of) == tuple(reason for reason in all_of if reason.column in names)
        together += len(names) > 1
    assert together
