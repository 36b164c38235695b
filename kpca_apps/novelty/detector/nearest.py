"""Find the rows nearest to a row, with sets of column groups left out of the distance.

The distance without a set is summed over the groups before, between and after its members. It is
not a difference of sums, in which a huge part would drown small ones.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.novelty.detector.neighbours import AGREEING, MOST_APART, NO_SET
from kpca_apps.system.arrays import FloatArray, IntArray
from kpca_apps.system.compiling import compiled


@compiled
def nearest_without(
    lines: FloatArray, line_of: IntArray, column_of: IntArray, level_of: IntArray,
    of_levels: FloatArray, rows: FloatArray, own: IntArray, sets: IntArray, largest: float,
    nearest: IntArray, radius: FloatArray,
) -> None:  # fmt: skip
    """Find the reference rows nearest to `rows` (r, d), with each set of column groups left out.

    `own` (r,) are the positions of `rows` among the s reference rows, or -1; `sets` (r, e, w) are
    the groups to leave out, in order. Group g is the column `column_of[g]` with reference
    values `lines[line_of[g]]` (s,); if ``line_of[g]`` is -1 - j, the group has the squared
    distances `of_levels` (r, .) to the levels `level_of[j]` (s,). The square of a single column
    counts at most `largest`. The positions of the nearest rows are written to `nearest` (r, e, k),
    their mean squared distance to `radius` (r, e).
    """
    n_groups, n_rows, k = len(line_of), level_of.shape[1], nearest.shape[2]
    parts = np.empty((n_groups, n_rows))
    before = np.zeros((n_groups + 1, n_rows))
    behind = np.empty((n_groups + 1, n_rows))
    alike, rest, distances = np.empty(n_rows), np.empty(n_rows), np.empty(k)
    members, place = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    left_out = np.empty(n_groups, np.bool_)
    for i in range(len(rows)):
        row, wants_alike = rows[i], False
        left_out[:] = False
        for e in range(sets.shape[1]):
            wants_alike |= sets[i, e, 0] == AGREEING
            for w in range(sets.shape[2]):
                if sets[i, e, w] >= 0:
                    left_out[sets[i, e, w]] = True
        # `members` are the groups that occur in any set of the row. Sums to reuse: `base` over the
        # groups in no set, `before[j]` over members[:j], `behind[j]` over members[j:] plus `base`.
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
                    part[u] = squared if squared < largest else largest
            else:
                which, squares = level_of[-1 - line], of_levels[i]
                for u in range(n_rows):
                    part[u] = squares[which[u]]
            if wants_alike:
                for u in range(n_rows):
                    alike[u] += part[u] if part[u] < MOST_APART else MOST_APART
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
        for e in range(sets.shape[1]):
            kind, found = sets[i, e, 0], nearest[i, e]
            if kind == NO_SET:
                continue
            left_out[:] = False
            # If the set is empty, before[first] + behind[last + 1] below sums over all groups.
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
            if own[i] >= 0:
                rest[own[i]] = np.inf
            distances[:] = np.inf
            found[:] = 0
            for u in range(n_rows):
                if rest[u] < distances[-1]:
                    at = k - 1
                    while at > 0 and distances[at - 1] > rest[u]:
                        distances[at], found[at] = distances[at - 1], found[at - 1]
                        at -= 1
                    distances[at], found[at] = rest[u], u
            radius[i, e] = distances.sum() / k
