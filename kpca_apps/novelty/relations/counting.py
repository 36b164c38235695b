"""Rows of a table counted by the values of two of its columns, for very many pairs; compiled.

Most columns say nothing of each other. That is seen here, quickly and with a margin for rounding;
what may hold is then looked at by those who ask, to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.system.arrays import BoolArray, FloatArray, IntArray
from kpca_apps.system.compiling import compiled, inlined

Codes = NDArray[np.int32]  # (columns, n)

# Sums in another order differ by less, in nats; and shares of rows, and numbers, by as much of one.
ROUNDING = 1e-6
MULTIPLIED, LARGEST = 4, 1e100  # times that a ratio is multiplied, and what is no longer
FIRST = 3  # priors, after which a column that says nothing is seen to


@compiled
def in_order_of(codes: NDArray[np.int32], order: IntArray, ends: IntArray) -> None:
    """Order rows (n,) by their code; rows of code g end before `ends[g]`. Below 0: left out."""
    ends[:] = 0
    for row in range(len(codes)):
        if codes[row] >= 0:
            ends[codes[row]] += 1
    start = 0
    for g in range(len(ends)):
        start += ends[g]
        ends[g] = start - ends[g]
    for row in range(len(codes)):
        if codes[row] >= 0:
            order[ends[codes[row]]] = row
            ends[codes[row]] += 1


@inlined
def _may_tell(
    given: NDArray[np.int32], value: NDArray[np.int32], counts: NDArray[np.int32], n_pairs: int,
    n_rows: IntArray, missing: int, log_q: FloatArray, inverse_q: FloatArray, limit: float,
    shrinkage: FloatArray, discounts: FloatArray,
) -> bool:  # fmt: skip
    """Whether a column may say more than `limit` nats of another, as `counts` has it.

    No prior comes to more than the counts themselves do, nor to more than they do where the value
    of a row is in others of its group: p / q <= 1 + others (1 / q - 1) / rest, which is 1 where
    it is in none.
    """
    by_counts, by_repeats = 0.0, 0.0
    for g in range(len(n_rows)):
        if g != missing and n_rows[g] > 1:
            by_counts -= n_rows[g] * np.log(n_rows[g])
    for k in range(n_pairs):
        n = n_rows[given[k]]
        if given[k] != missing and n > 1:
            by_counts -= counts[k] * log_q[value[k]]
            if counts[k] > 1:
                by_counts += counts[k] * np.log(counts[k])
                left = (counts[k] - 1) * (inverse_q[value[k]] - 1.0)
                by_repeats += counts[k] * np.log1p(left / (n - 1))
    if min(by_counts, by_repeats) < limit - ROUNDING:
        return False
    n_kinds = np.zeros(len(n_rows), np.int32)
    for k in range(n_pairs):
        n_kinds[given[k]] += 1
    most, best = -np.inf, 0.0
    for i in range(len(shrinkage) + len(discounts)):
        m = shrinkage[i] if i < len(shrinkage) else best
        d = 0.0 if i < len(shrinkage) else discounts[i - len(shrinkage)]
        gain, product = 0.0, 1.0
        for k in range(n_pairs):
            n = n_rows[given[k]]
            if given[k] != missing and n > 1:
                others = counts[k] - 1
                new = m + d * (n_kinds[given[k]] - (others == 0))
                left = max(others - d, 0.0) * inverse_q[value[k]]
                ratio = (left + new) / (n - 1 + m)
                if counts[k] > MULTIPLIED:
                    gain += counts[k] * np.log(ratio)
                    continue
                # Logarithms take most of the time: one for many of the rows.
                for _ in range(counts[k]):
                    product *= ratio
                if product > LARGEST or product < 1 / LARGEST:
                    gain += np.log(product)
                    product = 1.0
        gain += np.log(product)
        if gain >= limit - ROUNDING:
            return True
        if i < len(shrinkage) and gain > most:
            most, best = gain, m
        # The first few show whether any says something.
        if i == FIRST - 1 and most < -ROUNDING:
            return False
    return False


@compiled
def telling_pairs(
    codes: Codes, missing: IntArray, log_q: FloatArray, starts: IntArray, limits: FloatArray,
    shrinkage: FloatArray, discounts: FloatArray,
) -> BoolArray:  # fmt: skip
    """Which column (the first place) may say more of another (the second) than its limit.

    `log_q` of column a begin at `starts[a]`. Codes above that of missing cells were dropped.
    """
    inverse_q = np.exp(-log_q)
    n_columns, n = codes.shape
    n_codes = 1
    for a in range(n_columns):
        n_codes = max(n_codes, missing[a] + 1)
    tells = np.zeros((n_columns, n_columns), np.bool_)
    order, ends = np.zeros(n, np.int64), np.zeros(n_codes, np.int64)
    tally = np.zeros(n_codes, np.int32)
    of_a, of_b, counts = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    known = np.zeros(n, np.int32)
    for a in range(n_columns):
        n_a = missing[a] + 1
        for row in range(n):
            known[row] = codes[a, row] if codes[a, row] < n_a else -1
        in_order_of(known, order, ends[:n_a])
        for b in range(a + 1, n_columns):
            n_b = missing[b] + 1
            rows_a, rows_b = np.zeros(n_a, np.int64), np.zeros(n_b, np.int64)
            n_pairs, start = 0, 0
            for g in range(n_a):
                first = n_pairs
                for place in range(start, ends[g]):
                    v = codes[b, order[place]]
                    if v < n_b:
                        if tally[v] == 0:
                            of_a[n_pairs], of_b[n_pairs] = g, v
                            n_pairs += 1
                        tally[v] += 1
                start = ends[g]
                for k in range(first, n_pairs):
                    v = of_b[k]
                    counts[k] = tally[v]
                    rows_a[g] += tally[v]
                    rows_b[v] += tally[v]
                    tally[v] = 0
            # Both ways in one call, in whose place the function is written.
            for turned in range(2):
                g, t = (b, a) if turned else (a, b)
                given, value = (of_b, of_a) if turned else (of_a, of_b)
                of_t = slice(starts[t], starts[t] + missing[t] + 1)
                tells[g, t] = _may_tell(
                    given, value, counts, n_pairs, rows_b if turned else rows_a, missing[g],
                    log_q[of_t], inverse_q[of_t], limits[t], shrinkage, discounts,
                )  # fmt: skip
    return tells
