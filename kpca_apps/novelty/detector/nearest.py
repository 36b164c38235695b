"""The rows nearest to one row when some groups of columns are left out, for many such sets.

Compiled. Distances without a set are the sum over all groups less its parts, which rounding moves
by no more than a known part of the sum; only the few rows that may be among the nearest are
summed again, over the other groups alone. So a huge part drowns none of the small ones.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.compiling import compiled

EVERY = 8  # rows, the nearest of which bounds how far the nearest of all may be
# What rounding moves a sum by, relatively, for each number added.
ROUNDED = 2.0**-51


@compiled
def squares_from(
    lines: FloatArray, row: FloatArray, places: IntArray, largest: float, squares: FloatArray
) -> None:
    """Squared distance of a row (g,) in each line (g, s), at most `largest`, at their places."""
    for i in range(len(lines)):
        line, out, own = lines[i], squares[places[i]], row[i]
        for u in range(len(line)):
            squared = (line[u] - own) * (line[u] - own)
            out[u] = squared if squared < largest else largest


@compiled
def _keep_nearest(distance: float, row: int, distances: FloatArray, rows: IntArray) -> None:
    """Put a row into the lists (k,) of the nearest ones, in order; of equals the first stays."""
    if distance > distances[-1] or (distance == distances[-1] and row >= rows[-1]):
        return
    place = len(distances) - 1
    while place > 0 and (
        distances[place - 1] > distance
        or (distances[place - 1] == distance and rows[place - 1] > row)
    ):
        distances[place], rows[place] = distances[place - 1], rows[place - 1]
        place -= 1
    distances[place], rows[place] = distance, row


@compiled
def nearest_without(
    parts: FloatArray, most: float, sets: IntArray, own: IntArray, nearest: IntArray,
    radius: FloatArray,
) -> None:  # fmt: skip
    """Find the rows nearest in all groups outside each set, and their mean squared distance.

    `parts` (groups, s) are squared distances to all rows, of which none counts more than `most`;
    `sets` (e, w) groups that are left out (-1: none more), `own` rows that are not asked. Fills
    `nearest` (e, k) and `radius` (e,).
    """
    (n_groups, n_rows), k = parts.shape, nearest.shape[1]
    total, error, rest = np.zeros(n_rows), np.empty(n_rows), np.empty(n_rows)
    for g in range(n_groups):
        part = parts[g]
        for u in range(n_rows):
            total[u] += min(part[u], most)
    for u in own:
        total[u] = np.inf
    for u in range(n_rows):
        error[u] = ROUNDED * n_groups * total[u]
    # Rows n_few apart are looked at together: the tenth of the nearest of each few is no nearer
    # than the tenth of all.
    n_few = (n_rows + EVERY - 1) // EVERY
    lowest, highest = np.empty(n_few), np.empty(n_few)
    distances, unused = np.empty(k), np.zeros(k, np.int64)
    left_out = np.zeros(n_groups, np.bool_)
    for e in range(len(sets)):
        left_out[:] = False
        for u in range(n_rows):
            rest[u] = total[u]
        for g in sets[e]:
            if g >= 0:
                left_out[g] = True
                part = parts[g]
                for u in range(n_rows):
                    rest[u] -= min(part[u], most)
        lowest[:], highest[:] = np.inf, np.inf
        for first in range(0, n_rows, n_few):
            rest_of, error_of = rest[first : first + n_few], error[first : first + n_few]
            for j in range(len(rest_of)):
                low, high = rest_of[j] - error_of[j], rest_of[j] + error_of[j]
                lowest[j] = low if low < lowest[j] else lowest[j]
                highest[j] = high if high < highest[j] else highest[j]
        distances[:] = np.inf
        for j in range(n_few):
            if highest[j] < distances[-1]:
                _keep_nearest(highest[j], j, distances, unused)
        bound = distances[-1]
        distances[:], nearest[e, :] = np.inf, 0
        for j in range(n_few):
            if lowest[j] <= bound:
                for u in range(j, n_rows, n_few):
                    # Of a row that is not asked this is no number.
                    if rest[u] - error[u] <= bound:
                        distance = 0.0
                        for g in range(n_groups):
                            if not left_out[g]:
                                distance += min(parts[g, u], most)
                        _keep_nearest(distance, u, distances, nearest[e])
        radius[e] = 0.0
        for place in range(k):
            radius[e] += distances[place] / k


@compiled
def _median(values: FloatArray) -> float:
    """Median of some values (k,), which are sorted in place."""
    gap = 1
    while 3 * gap < len(values):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3
    middle: float = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return middle


@compiled
def middle_of(
    raw: FloatArray, scaled: FloatArray, own: FloatArray, columns: IntArray, ends: IntArray,
    are_categories: BoolArray, asked: IntArray, of_row: IntArray, lines: IntArray,
    values: FloatArray, standardised: FloatArray, distances: FloatArray,
) -> None:  # fmt: skip
    """Find what groups of columns should read, by the middle of some rows, a line (m, k) for each.

    Of columns the medians; of the indicators of a category its most frequent level. The columns of
    group g end before `columns[ends[g]]`; `asked` (m,) are groups, `of_row` whose. Fills `values`
    as they come and `standardised`, one group after the other, and how far each row of `own` is
    from the medians (m,).
    """
    cells, first = np.empty(lines.shape[1]), 0
    for i in range(len(asked)):
        g, nearest, most, level = asked[i], lines[i], -np.inf, -1
        start = ends[g - 1] if g > 0 else 0
        distances[i] = 0.0
        for j in range(start, ends[g]):
            c, at, total = columns[j], first + j - start, 0.0
            for place in range(len(nearest)):
                cells[place] = raw[nearest[place], c]
                total += cells[place]
            if total > most:
                most, level = total, c
            values[at] = _median(cells)
            for place in range(len(nearest)):
                cells[place] = scaled[nearest[place], c]
            standardised[at] = _median(cells)
            distances[i] += abs(standardised[at] - own[of_row[i], c])
        if are_categories[g]:
            like = nearest[0]
            for u in nearest:
                if raw[u, level] > raw[like, level]:
                    like = u
            for j in range(start, ends[g]):
                values[first + j - start] = raw[like, columns[j]]
                standardised[first + j - start] = scaled[like, columns[j]]
        first += ends[g] - start
