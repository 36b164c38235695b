"""Compare the columns of two tables: distributions, frequencies of levels, missing values.

Column summaries are compared by tests with one family-wise error rate (Holm). Only large changes
are reported: in a million rows every difference is significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import chdtrc, kolmogorov

from kpca_apps.names import listed, one_line, quoted
from kpca_apps.novelty.columns.encoding import ColumnSummary, MovedDates, TableEncoder
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.result import MovedColumn
from kpca_apps.system.arrays import FloatArray
from kpca_apps.tables.table import Table
from kpca_apps.tables.values import date_text

RATE = 0.01  # rate of false reports between tables that do not differ
# Minimum Kolmogorov-Smirnov or total variation distance, and minimum change in the share of missing
# cells, to report.
LEAST_DISTANCE, LEAST_GAPS = 0.1, 0.05
MIN_CELLS = 30  # minimum number of cells in each table
EXPECTED = 5.0  # minimum expected count of a level for the chi-squared approximation


def find_drift(
    encoder: TableEncoder, where: str, table: Table, *, clean: bool
) -> tuple[tuple[MovedColumn, ...], tuple[str, ...]]:
    """Return the columns distributed unlike those of the training table, and notes on them."""
    before = encoder.summaries
    now = [ColumnSummary.of(table.column[spec.name], spec) for spec in encoder.plan.used]
    moved, notes = moved_columns(before, now), list[str]()
    dates = [coder.spec.name for coder in encoder.coders if isinstance(coder, MovedDates)]
    if dates:
        notes.append(
            f"Most dates of {listed(dates)} are outside the range of {where}. This counts against "
            "no row: each is compared with the other dates of its table and its row. To leave a "
            "column of dates out of the model, use --exclude."
        )
    if others := [column.column for column in moved if column.column not in dates]:
        what = "p-values and rates hold" if clean else "how rare a score is called holds"
        verb = "is" if len(others) == 1 else "are"
        notes.append(
            f"{listed(others)} {verb} distributed differently than in {where}: {what} only for "
            "rows like those; see which columns moved, and fit a new model if the data changed."
        )
    return moved, (*notes, *(_run_on(before, now) if clean else ()))


def moved_columns(
    before: Sequence[ColumnSummary], after: Sequence[ColumnSummary]
) -> tuple[MovedColumn, ...]:
    """Return the columns of both tables whose distributions differ, the largest change first."""
    of_name = {summary.name: summary for summary in before}
    tried: list[tuple[float, float, MovedColumn]] = []
    for summary in after:
        if (other := of_name.get(summary.name)) is not None:
            tried += _changes(other, summary)
    found: list[MovedColumn] = []
    # Holm: compare the smallest p-value with RATE / n, the next with RATE / (n - 1), and so on.
    for rank, (p_value, least, moved) in enumerate(sorted(tried, key=lambda one: one[0])):
        if p_value * (len(tried) - rank) > RATE:
            break
        if moved.size >= least:
            found.append(moved)
    found.sort(key=lambda one: (-one.size, one.column))
    largest = {moved.column: moved for moved in reversed(found)}
    return tuple(moved for moved in found if largest[moved.column] is moved)


def _run_on(before: Sequence[ColumnSummary], after: Sequence[ColumnSummary]) -> Iterator[Note]:
    """Yield notes on columns that rise or fall with the row number and left their old range."""
    for old, new in zip(before, after, strict=True):
        if not (old.runs_on and old.quantiles and new.quantiles):
            continue
        middle = new.quantiles[len(new.quantiles) // 2]
        if old.quantiles[0] <= middle <= old.quantiles[-1]:
            continue
        (first, last), (since, until) = (
            [_write(own.quantiles[end], new) for end in (0, -1)] for own in (new, old)
        )
        what = f"Column {quoted(new.name)} has run on"
        rest = "what repeats in it is compared, not how far it has run."
        yield Note(
            f"{what}: from {first} to {last}, and from {since} to {until} in the table of the "
            f"model; {rest}",
            f"{what}; {rest}",
            (new.name,),
        )


def _changes(old: ColumnSummary, new: ColumnSummary) -> list[tuple[float, float, MovedColumn]]:
    """Return p-value, minimum reported size and description of each change between two columns."""
    if min(old.n_cells, new.n_cells) < MIN_CELLS:
        return []
    changes = []
    gaps = np.array([[old.n_missing, old.n_values], [new.n_missing, new.n_values]], dtype=float)
    shares = gaps[:, 0] / gaps.sum(axis=1)
    words = f"{shares[1]:.0%} missing, was {shares[0]:.0%}"
    size = abs(float(shares[1] - shares[0]))
    changes.append((_chi_squared(gaps), LEAST_GAPS, MovedColumn(new.name, "missing", size, words)))
    if min(old.n_values, new.n_values) < MIN_CELLS or old.runs_on:
        return changes
    if old.quantiles and new.quantiles:
        (first, last), (since, until) = new.span, (old.quantiles[0], old.quantiles[-1])
        if new.is_date and since <= first <= last <= until:
            return changes  # the training table covers this period
        size, p_value = _kolmogorov(old, new)
        moved = MovedColumn(new.name, "distribution", size, _shift(old, new))
        changes.append((p_value, LEAST_DISTANCE, moved))
    elif old.levels or new.levels:
        table = _level_counts(old, new)
        shares = table / table.sum(axis=1, keepdims=True)
        size = 0.5 * float(np.abs(shares[1] - shares[0]).sum())
        moved = MovedColumn(new.name, "levels", size, _level_words(old, new))
        rare = table.sum(axis=0) * (table.sum(axis=1).min() / table.sum()) < EXPECTED
        merged = np.hstack([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)])
        changes.append((_chi_squared(merged), LEAST_DISTANCE, moved))
    return changes


def _kolmogorov(old: ColumnSummary, new: ColumnSummary) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance of two columns' quantiles, and its p-value.

    The p-value is that of the distance minus the largest error of the quantiles.
    """
    places = np.union1d(old.quantiles, new.quantiles)
    below = [
        np.searchsorted(one.quantiles, places, side="right") / len(one.quantiles)
        for one in (old, new)
    ]
    distance = float(np.abs(below[0] - below[1]).max())
    unknown = sum(1 / len(one.quantiles) for one in (old, new) if len(one.quantiles) < one.n_values)
    n = old.n_values * new.n_values / (old.n_values + new.n_values)
    return distance, float(kolmogorov(max(distance - unknown, 0.0) * math.sqrt(n)))


def _level_counts(old: ColumnSummary, new: ColumnSummary) -> FloatArray:
    """Return counts (2, k + 1): a row per table, a column per level, the last for all others."""
    counts = [dict(zip(one.levels, one.counts, strict=True)) for one in (old, new)]
    # A level missing from one summary may be among the levels that the summary does not count.
    is_whole = [sum(one.counts) == one.n_values for one in (old, new)]
    names = [
        name
        for name in dict.fromkeys([*old.levels, *new.levels])
        if all(name in count or whole for count, whole in zip(counts, is_whole, strict=True))
    ]
    table = np.array([[count.get(name, 0) for name in names] for count in counts], dtype=float)
    rest = [[one.n_values - row.sum()] for one, row in zip((old, new), table, strict=True)]
    return np.hstack([table, rest])


def _chi_squared(table: FloatArray) -> float:
    """Return the p-value of Pearson's test for two rows of counts (2, k)."""
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    return float(chdtrc(table.shape[1] - 1, statistic))


def _shift(old: ColumnSummary, new: ColumnSummary) -> str:
    quarters = np.array([0.25, 0.5, 0.75])
    q25, medians, q75 = zip(
        *(np.quantile(one.quantiles, quarters, method="inverted_cdf") for one in (old, new)),
        strict=True,
    )
    before, now = ([_write(own[k], old) for own in (q25, medians, q75)] for k in (0, 1))
    if before[1] != now[1]:
        return f"median {now[1]}, was {before[1]}"
    return f"middle half from {now[0]} to {now[2]}, was {before[0]} to {before[2]}"


def _write(value: float, column: ColumnSummary) -> str:
    if column.is_date:
        return date_text(value, False)
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.4g}"


def _level_words(old: ColumnSummary, new: ColumnSummary) -> str:
    shares = [
        {name: count / one.n_values for name, count in zip(one.levels, one.counts, strict=True)}
        for one in (old, new)
    ]
    names = sorted({*shares[0], *shares[1]})
    gained = {name: shares[1].get(name, 0.0) - shares[0].get(name, 0.0) for name in names}
    most = max(names, key=lambda name: (round(abs(gained[name]), 9), gained[name]))
    before, now = (share.get(most, 0.0) for share in shares)
    return f'"{one_line(most, 40)}" {now:.0%}, was {before:.0%}'
