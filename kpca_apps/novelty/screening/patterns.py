"""Flagged rows that are odd for the same reason, told as one pattern.

Rows belong together whose first reason names the same columns and whose values there are off
alike: they read the same, or a like multiple of what was expected, or lie on the same side of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from kpca_apps.files.names import one_line
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.result import (
    ColumnProfile,
    NumericProfile,
    Pattern,
    RankedRow,
    Reason,
)
from kpca_apps.novelty.table.columns import quoted
from kpca_apps.novelty.table.encoding import MISSING

__all__ = ["find_patterns"]

# Two rows that are odd alike may be so by chance, and need no summary.
MIN_ROWS = 3
# Multiples of what was expected are alike if none is twice another, and apart from others where
# half as much again lies between them; a multiple below 2 is told as "above" or "below".
LARGEST_SPREAD, SMALLEST_GAP, SMALLEST_FACTOR = 2.0, 1.5, 2.0
# A value of another column is told where so many rows of the pattern share it, so few of the other
# rows have it, and chance would so rarely do the same in any of the columns looked at.
MOST, FEW, BY_CHANCE = 0.9, 0.25, 0.01
YEAR = 365.25 * 86_400.0
PLURALS = {"is": "are", "has": "have"}
ABOVE, BELOW = "is above what the rest suggests", "is below what the rest suggests"


@dataclass(frozen=True)
class _Odd:
    """A flagged row and the columns of its first reason, in the order of the table."""

    row: RankedRow
    place: int
    reasons: tuple[Reason, ...]


def find_patterns(
    ranked: Sequence[RankedRow],
    columns: Sequence[ColumnProfile],
    listed: Table,
    sample: Table,
) -> tuple[Pattern, ...]:
    """Find flagged rows that are odd for the same reason.

    Parameters
    ----------
    ranked : sequence of RankedRow
        The ranked list; rows that are flagged and explained are looked at.
    columns : sequence of ColumnProfile
        All columns of the table; no value of a hidden one is told.
    listed : Table
        The rows of the list, in its order, as they stand in the table.
    sample : Table
        All rows of the table, or rows drawn from it: how common a value is among them.

    Returns
    -------
    tuple of Pattern
        Those of most rows first.
    """
    order = {column.name: number for number, column in enumerate(columns)}
    by_reason: dict[tuple[tuple[str, ...], tuple[str, ...]], list[_Odd]] = {}
    profiles = {column.name: column for column in columns}
    for place, row in enumerate(ranked):
        if row.flagged and row.reasons:
            reasons = tuple(sorted(row.reason_sets[0], key=lambda r: order.get(r.column, -1)))
            names = tuple(reason.column for reason in reasons)
            kinds = tuple(_kind(reason, profiles.get(reason.column)) for reason in reasons)
            by_reason.setdefault((names, kinds), []).append(_Odd(row, place, reasons))
    commons = _Commons(columns, listed, sample)
    found = [
        _pattern(names, clause, odd, commons)
        for (names, kinds), rows in by_reason.items()
        for clause, odd in _alike(kinds, rows, profiles)
    ]
    return tuple(sorted(found, key=lambda pattern: -len(pattern.rows)))


def _kind(reason: Reason, profile: ColumnProfile | None) -> str:
    """Say in a word how a value is off; values of one kind may go into one pattern."""
    if profile is not None and profile.hidden:
        return "hidden"
    if reason.seen == MISSING:
        return "missing"
    if reason.side:
        return reason.side
    if reason.expected == MISSING:
        return "given"
    return f"reads {reason.seen_value}" if isinstance(reason.seen_value, str) else "other"


def _alike(
    kinds: tuple[str, ...], rows: list[_Odd], profiles: dict[str, ColumnProfile]
) -> Iterator[tuple[str, list[_Odd]]]:
    """Divide rows of the same columns and kinds into patterns, each with what is odd of them."""
    left = rows
    if {*kinds} <= {"above", "below"}:
        for same in _same_values(left):
            yield _clauses(same, ["same"] * len(kinds)), same
            left = _without(left, same)
        if len(kinds) == 1:
            profile = profiles[left[0].reasons[0].column] if left else None
            is_date = profile is not None and _is_date(profile)
            for factor, like in _like_factors(left, is_date=is_date):
                yield _clauses(like, [factor]), like
                left = _without(left, like)
    if len(left) >= MIN_ROWS:
        yield _clauses(left, kinds), left


def _without(rows: list[_Odd], taken: list[_Odd]) -> list[_Odd]:
    places = {odd.place for odd in taken}
    return [odd for odd in rows if odd.place not in places]


def _is_date(profile: ColumnProfile) -> bool:
    return isinstance(profile.distribution, NumericProfile) and profile.distribution.is_date


def _same_values(rows: list[_Odd]) -> Iterator[list[_Odd]]:
    """Rows that read the same in all columns of the reason, where that is no coincidence.

    Among numbers off to the same side, some agree. Told are those that are half of all rows, and
    those at the far end, as zeros, limits of an instrument and codes for "unknown" are.
    """
    by_value: dict[tuple[str, ...], list[_Odd]] = {}
    for odd in rows:
        by_value.setdefault(tuple(reason.seen for reason in odd.reasons), []).append(odd)
    farthest = max(rows, key=_outwards)
    for same in by_value.values():
        at_end = _outwards(same[0]) == _outwards(farthest)
        if len(same) >= MIN_ROWS and (2 * len(same) >= len(rows) or at_end):
            yield same


def _outwards(odd: _Odd) -> tuple[float, ...]:
    """Values of the reason, larger the farther they lie to the side they are off to."""
    return tuple(
        reason.seen_value if reason.side == "above" else -reason.seen_value
        for reason in odd.reasons
        if isinstance(reason.seen_value, float)
    )


def _like_factors(rows: list[_Odd], *, is_date: bool) -> Iterator[tuple[str, list[_Odd]]]:
    """Rows whose value is about the same multiple of what was expected, or as long before it."""
    sized: list[tuple[float, _Odd]] = []
    for odd in rows:
        seen, expected = odd.reasons[0].seen_value, odd.reasons[0].expected_value
        if isinstance(seen, float) and isinstance(expected, float):
            size = abs(seen - expected) if is_date else seen / expected if expected else 0.0
            sized.append((size, odd))
    for sign in (1.0, -1.0):
        of_sign = sorted(((s, odd) for s, odd in sized if sign * s > 0), key=lambda one: one[0])
        sizes = np.abs([size for size, _ in of_sign])
        gaps = np.flatnonzero(np.abs(np.diff(np.log(sizes))) > np.log(SMALLEST_GAP)) + 1
        for part in np.split(np.arange(len(of_sign)), gaps):
            if len(part) < MIN_ROWS or sizes[part].max() > LARGEST_SPREAD * sizes[part].min():
                continue
            like = sorted((of_sign[place][1] for place in part), key=lambda odd: odd.place)
            size = sign * float(np.median(sizes[part]))
            said = _dates_apart(size, like[0]) if is_date else _factor(size)
            if said:
                yield said, like


def _factor(size: float) -> str:
    """Say what multiple of what was expected is read; empty where "above" or "below" does."""
    rest = "what the rest suggests"
    if size >= SMALLEST_FACTOR:
        return f"about {_rounded(size)} times {rest}"
    if 0 < size <= 1 / SMALLEST_FACTOR:
        return f"about 1/{_rounded(1 / size)} of {rest}"
    if 1 / SMALLEST_FACTOR < -size < SMALLEST_FACTOR:
        return f"of the opposite sign of {rest}"
    return ""


def _dates_apart(seconds: float, odd: _Odd) -> str:
    """Say how many years lie between dates and what was expected; empty if fewer than two."""
    years, side = seconds / YEAR, "after" if odd.reasons[0].side == "above" else "before"
    return f"about {_rounded(years)} years {side} what the rest suggests" if years >= 2 else ""


def _rounded(size: float) -> str:
    """Write a number from 1 with two significant digits."""
    rounded = float(f"{size:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _clauses(rows: list[_Odd], kinds: Sequence[str]) -> str:
    """Say what is odd of the columns of some rows, once of columns that are odd alike."""
    names: dict[str, list[str]] = {}
    for place, kind in enumerate(kinds):
        clause = _clause(kind, [odd.reasons[place] for odd in rows])
        names.setdefault(clause, []).append(rows[0].reasons[place].column)
    said = [_of_columns(of, clause) for clause, of in names.items() if clause not in (ABOVE, BELOW)]
    if ABOVE in names and BELOW in names:
        higher = _of_columns(names[ABOVE], "is above")
        said.append(f"{higher} and {_all_of(names[BELOW])} {BELOW.removeprefix('is ')}")
    else:
        said += [_of_columns(names[side], side) for side in (ABOVE, BELOW) if side in names]
    return ", ".join(said)


def _of_columns(names: Sequence[str], clause: str) -> str:
    """Say one clause of one column, or of several."""
    if len(names) > 1:
        verb, rest = clause.split(" ", 1)
        whose = "all" if len(names) > 2 else "both"
        clause = f"{PLURALS.get(verb, f'{whose} read')} {rest}"
    return f"{_all_of(names)} {clause}"


def _all_of(names: Sequence[str]) -> str:
    *others, last = map(quoted, names)
    return f"{', '.join(others)} and {last}" if others else last


def _clause(kind: str, reasons: list[Reason]) -> str:
    """Say what is odd of one column of some rows."""
    if kind == "hidden":
        return "is odd (values hidden)"
    if kind in ("missing", "given"):
        return "is missing" if kind == "missing" else "has a value where the rest suggests none"
    if kind == "same" or kind.startswith("reads "):
        expected = {reason.expected for reason in reasons}
        of_one = f" where {one_line(expected.pop(), 40)} was expected" if len(expected) == 1 else ""
        return f"reads {one_line(reasons[0].seen, 40)}{of_one}"
    if kind in ("above", "below"):
        return ABOVE if kind == "above" else BELOW
    return "is unlike what the rest suggests" if kind == "other" else f"is {kind}"


def _pattern(names: tuple[str, ...], clause: str, rows: list[_Odd], commons: _Commons) -> Pattern:
    common = commons.of(rows, names)
    shared = ""
    if common is not None:
        column, value, n_sharing = common
        who = "all" if n_sharing == len(rows) else f"{n_sharing:,} of them"
        shared = f", {who} with {quoted(column)} {one_line(value, 40)}"
    return Pattern(
        rows=tuple(odd.row.row for odd in rows),
        columns=names,
        sentence=f"{len(rows):,} rows: {clause}{shared}.",
        common=None if common is None else common[:2],
    )


class _Commons:
    """What values of other columns the rows of a pattern share."""

    def __init__(self, columns: Sequence[ColumnProfile], listed: Table, sample: Table) -> None:
        self.listed, self.sample = listed, sample
        self.names = [c.name for c in columns if not c.hidden and c.name in listed.frame.columns]
        self.counts: dict[str, dict[str, int]] = {}

    def of(self, rows: list[_Odd], names: tuple[str, ...]) -> tuple[str, str, int] | None:
        """Column, value and number of rows that share it; None where none stands out."""
        places, n = [odd.place for odd in rows], len(rows)
        others = [name for name in self.names if name not in names]
        best, rarest = None, BY_CHANCE
        for name in others:
            texts = self.listed.column(name).texts.gather(places).to_list()
            value, n_sharing = Counter(texts).most_common(1)[0]
            if value is None or n_sharing < MOST * n:
                continue
            n_other = max(self.sample.frame.height - n, 1)
            share = (max(self._count(name, value) - n_sharing, 0) + 1) / (n_other + 1)
            chance = len(others) * float(binom.sf(n_sharing - 1, n, share))
            if share <= FEW and chance < rarest:
                shown = self.listed.column(name).text(places[texts.index(value)])
                best, rarest = (name, shown, n_sharing), chance
        return best

    def _count(self, name: str, value: str) -> int:
        if name not in self.counts:
            self.counts[name] = dict(self.sample.column(name).levels.most_frequent())
        return self.counts[name].get(value, 0)
