import numpy as np

from kpca_apps.novelty.attribution import NeighbourRows, attribute

NONE = np.array([], dtype=np.int64)


def neighbours(rows, as_is=NONE):
    return NeighbourRows(rows, rows, as_is, np.arange(len(rows)))


def singles(d):
    return [np.array([j]) for j in range(d)]


def expected_by_hand(rows, row, column):
    others = np.delete(np.arange(rows.shape[1]), column)
    distance = ((rows[:, others] - row[others]) ** 2).sum(axis=1)
    return np.median(rows[np.argsort(distance)[:10], column])


def expected(rows, row, groups, own=-1, as_is=NONE):
    """What each group should read, by a score that drops with any replacement."""
    (told,) = attribute(
        row[None],
        row[None],
        np.ones(1),
        lambda candidates, _: np.zeros(len(candidates)),
        neighbours(rows, as_is),
        groups,
        np.array([own]),
        typical=1.0,
    )
    return {drop.group: drop.expected.tolist() for drop in told}


def test_expected_values_are_medians_over_rows_near_in_the_other_columns():
    rng = np.random.default_rng(0)
    rows, row = rng.normal(size=(200, 4)), rng.normal(size=4)
    by_hand = {j: [expected_by_hand(rows, row, j)] for j in range(4)}
    assert expected(rows, row, singles(4)) == by_hand


def test_a_huge_value_does_not_drown_the_distances_of_the_others():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3))
    row = np.array([1e12, 0.0, 0.0])
    assert expected(rows, row, singles(3))[0] == [expected_by_hand(rows, row, 0)]


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
    rows = np.arange(21.0)[:, None]
    assert expected(rows, np.array([99.0]), singles(1)) == {0: [10.0]}


def test_shares_are_drops_over_their_sum_in_order():
    rows = np.zeros((20, 3))
    X = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]])

    def score(candidates, row):
        return np.abs(candidates).sum(axis=1)

    first, second = attribute(
        X, X, np.abs(X).sum(axis=1), score, neighbours(rows), singles(3), np.array([-1, -1])
    )
    assert [(drop.group, drop.share) for drop in first] == [(0, 0.75), (2, 0.25)]
    assert (first[0].seen[0], first[0].expected[0]) == (3.0, 0.0)
    assert second == ()


def test_rows_are_explained_alike_in_any_batch():
    rng = np.random.default_rng(3)
    rows, X = rng.normal(size=(60, 3)), rng.normal(size=(3000, 3)) * 3

    def score(candidates, row):
        return (candidates**2).sum(axis=1)

    def explained(part):
        own = np.full(len(part), -1)
        return attribute(
            part, part, (part**2).sum(axis=1), score, neighbours(rows), singles(3), own
        )

    together = explained(X)
    assert [d.share for d in explained(X[2990:2991])[0]] == [d.share for d in together[2990]]


def test_of_many_columns_the_farthest_from_expected_are_tried():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(50, 200))
    X = np.zeros((1, 200))
    X[0, [3, 150]] = 9.0, -8.0
    asked = []

    def score(candidates, row):
        asked.append(len(candidates))
        return (candidates**2).sum(axis=1)

    (reasons,) = attribute(
        X, X, (X**2).sum(axis=1), score, neighbours(rows), singles(200), np.array([-1])
    )
    assert [drop.group for drop in reasons[:2]] == [3, 150]
    assert asked == [64]
