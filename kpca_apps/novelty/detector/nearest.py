"""The rows nearest to each of some rows when groups of columns are left out, for many such sets.

Compiled. Sums of squared distances without a set are put together from sums over the groups before
and behind it, in single precision, which moves each by no more than a known part of itself; only
the few rows that may be among the nearest are summed again, group by group. Nothing is taken away
from a sum, so that a huge part drowns none of the small ones.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.system.compiling import compiled

# So many lists of rows, of the nearest of which the tenth bounds how far the nearest of all may be.
LISTS = 64
# What stands in the place of a set's first group: no more groups; rows that agree in most groups,
# none of which counts more than `MOST_APART`, standing for a set; no set at all.
NONE, AGREEING, UNASKED = -1, -2, -3
# A group counts no more than one standard deviation: the nearest rows are then those that agree in
# most of them, whatever the others read.
MOST_APART = 1.0
# Squared differences are summed under a factor of 0 or 1, which infinity does not survive.
LARGEST_SQUARE = 1e200
# Up to here sums of squares are told apart in single precision; what its rounding moves them by,
# relatively, for each number added, with a margin; and less than any square that matters.
LARGEST_SINGLE, ROUNDED, SMALLEST = 1e30, 2.0**-22, 1e-30


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
    lines: FloatArray, line_of: IntArray, column_of: IntArray, level_of: IntArray,
    of_levels: FloatArray, reference: FloatArray, rows: FloatArray, own: IntArray, sets: IntArray,
    largest: float, nearest: IntArray, radius: FloatArray,
) -> None:  # fmt: skip
    """Find the rows nearest in all groups outside each set, and their mean squared distance.

    For each of `rows` (r, d), which are rows `own` (r,) of the `reference` (s, d) or none of them
    (-1), and its `sets` (r, e, w) of groups that are left out, in order. Group g is the column
    `column_of[g]`, whose values are `lines[line_of[g]]` (s,), or, where that is -1 - j, has the
    squared distances `of_levels` (r, .) to the levels `level_of[j]` (s,) of the reference. The
    square of a single column counts no more than `largest`. Fills `nearest` (r, e, k) and `radius`
    (r, e).
    """
    n_rows, n_groups, k = len(reference), len(line_of), nearest.shape[2]
    parts = np.empty((n_groups, n_rows), np.float32)
    before = np.empty((n_groups + 1, n_rows), np.float32)
    behind = np.empty((n_groups + 1, n_rows), np.float32)
    before[0] = 0.0
    alike, rest = np.empty(n_rows, np.float32), np.empty(n_rows, np.float32)
    # Rows `LISTS` apart are of one list.
    lowest = np.empty(LISTS, np.float32)
    distances, unused = np.empty(k), np.zeros(k, np.int64)
    members, place = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    others = np.empty(n_groups, np.int64)
    left_out, one_apart = np.empty(n_groups, np.bool_), np.float32(MOST_APART)
    most_single = min(largest, LARGEST_SINGLE)
    for i in range(len(rows)):
        row, wants_alike = rows[i], False
        left_out[:] = False
        for e in range(sets.shape[1]):
            wants_alike |= sets[i, e, 0] == AGREEING
            for w in range(sets.shape[2]):
                if sets[i, e, w] >= 0:
                    left_out[sets[i, e, w]] = True
        # The members of all sets, in order: sums over the other groups are made once, and sums of
        # these and the members before and behind each.
        m = 0
        for g in range(n_groups):
            place[g] = m
            if left_out[g]:
                members[m] = g
                m += 1
        base = behind[m]
        base[:] = 0.0
        alike[:] = 0.0
        for g in range(n_groups):
            part, line = parts[g], line_of[g]
            if line >= 0:
                values, cell = lines[line], row[column_of[g]]
                for u in range(n_rows):
                    squared = (values[u] - cell) * (values[u] - cell)
                    part[u] = squared if squared < most_single else most_single
            else:
                which, squares = level_of[-1 - line], of_levels[i]
                for u in range(n_rows):
                    squared = squares[which[u]]
                    part[u] = squared if squared < LARGEST_SINGLE else LARGEST_SINGLE
            if wants_alike:
                for u in range(n_rows):
                    alike[u] += part[u] if part[u] < one_apart else one_apart
            if not left_out[g]:
                for u in range(n_rows):
                    base[u] += part[u]
        for j in range(m - 1, -1, -1):
            part, total, more = parts[members[j]], behind[j + 1], behind[j]
            for u in range(n_rows):
                more[u] = total[u] + part[u]
        for j in range(m):
            part, total, more = parts[members[j]], before[j], before[j + 1]
            for u in range(n_rows):
                more[u] = total[u] + part[u]
        is_far = False
        for u in range(n_rows):
            is_far |= not behind[0, u] < LARGEST_SINGLE
        if own[i] >= 0:
            alike[own[i]] = np.inf
            for j in range(m + 1):
                behind[j, own[i]] = np.inf
        for e in range(sets.shape[1]):
            kind, found = sets[i, e, 0], nearest[i, e]
            if kind == UNASKED:
                continue
            left_out[:] = False
            # Without members before and behind that is the sum over all.
            first, last = 0, -1
            for w in range(sets.shape[2]):
                g = sets[i, e, w]
                if g >= 0:
                    left_out[g] = True
                    first, last = first if last >= 0 else place[g], place[g]
            total, more = before[first], alike if kind == AGREEING else behind[last + 1]
            for u in range(n_rows):
                rest[u] = total[u] + more[u]
            for j in range(first + 1, last):
                if not left_out[members[j]]:
                    part = parts[members[j]]
                    for u in range(n_rows):
                        rest[u] += part[u]
            lowest[:] = np.inf
            for start in range(0, n_rows, LISTS):
                some = rest[start : start + LISTS]
                for j in range(len(some)):
                    lowest[j] = some[j] if some[j] < lowest[j] else lowest[j]
            distances[:] = np.inf
            for j in range(LISTS):
                if lowest[j] < distances[-1]:
                    _keep_nearest(np.float64(lowest[j]), j, distances, unused)
            bound = distances[-1] * (1.0 + ROUNDED * (n_groups + 4)) + SMALLEST
            if is_far:
                bound = np.inf
            most, most_wide = largest, LARGEST_SQUARE
            if kind == AGREEING:
                most, most_wide = MOST_APART, MOST_APART
            # Columns of the other groups, from the front, and groups of several, from the end.
            n_columns, n_wide = 0, n_groups
            for g in range(n_groups):
                if not left_out[g]:
                    if line_of[g] >= 0:
                        others[n_columns] = column_of[g]
                        n_columns += 1
                    else:
                        n_wide -= 1
                        others[n_wide] = -1 - line_of[g]
            distances[:] = np.inf
            found[:] = 0
            for j in range(LISTS):
                if lowest[j] <= bound:
                    for u in range(j, n_rows, LISTS):
                        if rest[u] <= bound and u != own[i]:
                            distance, cells = 0.0, reference[u]
                            for at in range(n_columns):
                                c = others[at]
                                squared = (cells[c] - row[c]) * (cells[c] - row[c])
                                distance += squared if squared < most else most
                            for at in range(n_wide, n_groups):
                                squared = of_levels[i, level_of[others[at], u]]
                                distance += squared if squared < most_wide else most_wide
                            _keep_nearest(distance, u, distances, found)
            radius[i, e] = 0.0
            for j in range(k):
                radius[i, e] += distances[j] / k
