"""Rows that are odd for the same reason, as one pattern.

Rows belong together whose first reason names the same columns and whose values there deviate
alike: they read the same, or a like multiple of what was expected, or lie on the same side of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import betainc

from kpca_apps.names import MISSING, cut_apart, in_prose, quoted, quoted_cell
from kpca_apps.novelty.result import ColumnProfile, NumericProfile, Pattern, RankedRow, Reason
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table

# Two rows that are odd alike may be so by chance, and need no summary.
MIN_ROWS = 3
# Multiples of what was expected are alike if none is twice another, and distinct from others where
# half as much again lies between them; a multiple below 2 is called "above" or "below".
LARGEST_SPREAD, SMALLEST_GAP, SMALLEST_FACTOR = 2.0, 1.5, 2.0
# A value of another column is named where so many rows of the pattern share it, so few of the other
# rows have it, and chance would so rarely do the same in any of the columns looked at.
MOST, FEW, BY_CHANCE = 0.9, 0.25, 0.01
# So many of the flagged rows are needed to say that one value leads the list, so large a share of
# them, and this many times its share of the table.
MIN_LEADING, LEADING, TIMES_COMMONER = 20, 0.5, 4.0
# What is said of a column whose cells are odd alike, each by itself.
KINDS = {
    "far above": "is far above the rest of the column",
    "far below": "is far below the rest of the column",
    "date": "is far from all other dates",
    "zero": "is 0, far from all others",
    "sign": "has the wrong sign",
    "placeholder": "holds a code for a missing value",
    "stuck": "stands still",
    "code": "is no valid code",
    "misspelt": "is a common value misspelt",
    "unreadable": "cannot be read",
    "contradicted": "contradicts the rest of the row",
}
YEAR = 365.25 * 86_400.0
PLURALS = {"is": "are"}
ABOVE, BELOW = "is above what the rest suggests", "is below what the rest suggests"
AFTER = {"above": "after", "below": "before"}
CLAUSES = {
    "above": ABOVE,
    "below": BELOW,
    "missing": "is missing",
    "other": "is unlike what the rest suggests",
}


def kinds_of_evidence(evidence: pl.DataFrame) -> tuple[Pattern, ...]:
    """Count rows by the strongest evidence against single cells of them, the strongest first.

    They break the same rule, or cells of one column are odd in the same way.
    """
    is_rule = pl.col("rule") != ""
    kind, column = (pl.when(~is_rule).then(name) for name in ("kind", "column"))
    rows = evidence.unique("row", keep="first", maintain_order=True)
    by_kind = rows.group_by("rule", of_kind=kind, of_column=column, maintain_order=True)
    found = []
    for of in by_kind.agg("row", pl.first("column", "given")).iter_rows(named=True):
        n, name = len(of["row"]), of["column"]
        clause = f"{of['rule']} does not hold"
        if not of["rule"]:
            clause = f"{quoted(name)} {KINDS.get(of['of_kind'], 'is ' + of['of_kind'])}"
        sentence = f"{n:,} row{'s' * (n > 1)}: {clause}."
        about = (name, *of["given"]) if of["rule"] else (name,)
        found.append(Pattern(tuple(of["row"]), about, sentence))
    return tuple(found)


def find_patterns(
    ranked: Sequence[RankedRow], columns: Sequence[ColumnProfile], listed: Table, sample: Table
) -> tuple[Pattern, ...]:
    """Find flagged rows of a ranked list that are odd for the same reason; most rows first.

    `listed` are all ranked rows as they stand; `sample` shows how common a value is among all rows.
    """
    order = {column.name: number for number, column in enumerate(columns)}
    dates = {
        column.name
        for column in columns
        if isinstance(column.distribution, NumericProfile) and column.distribution.is_date
    }
    by_reason: dict[tuple[tuple[str, ...], tuple[str, ...]], list[RankedRow]] = {}
    for row in ranked:
        if row.flagged and row.reasons:
            # Its first reason alone, the columns in the order of the table.
            first = sorted(row.reason_sets[0], key=lambda r: order.get(r.column, -1))
            names = tuple(reason.column for reason in first)
            kinds = tuple(map(_kind, first))
            odd = replace(row, reasons=tuple(first))
            by_reason.setdefault((names, kinds), []).append(odd)
    # What rows share is said of a column that is not hidden.
    shown = [c.name for c in columns if c.name in listed.frame.columns and not c.hidden]
    found = []
    for (names, kinds), rows in by_reason.items():
        for clause, alike in _alike(kinds, rows, is_date=names[0] in dates):
            sentence = f"{len(alike):,} rows: {clause}"
            others = [name for name in shown if name not in names]
            places = np.array([row.rank - 1 for row in alike])
            common = _common(listed, places, others, sample)
            if common is not None:
                column, value, n_sharing = common
                who = "all" if n_sharing == len(alike) else f"{n_sharing:,} of them"
                sentence += f", {who} with {quoted(column)} {quoted_cell(value)}"
            positions = tuple(row.row for row in alike)
            shared = None if common is None else common[:2]
            # A value may end with a full stop itself: "12:30 a.m.".
            found.append(Pattern(positions, names, f"{sentence.removesuffix('.')}.", shared))
    return tuple(sorted(found, key=lambda pattern: -len(pattern.rows)))


def leading_note(
    ranked: Sequence[RankedRow], listed: Table, sample: Table, n_rows: int, names: Sequence[str]
) -> Iterator[str]:
    """Say that the rows of one value lead the list and go on beyond it.

    It is one that most flagged rows share in a column of those called `names`, and more rows of the
    table, of `n_rows`, have than these. `listed` are the ranked rows as they stand.
    """
    flagged = np.flatnonzero([row.flagged for row in ranked])
    n, best, most_often = len(flagged), "", TIMES_COMMONER
    shared = _shared(listed, flagged, sample, names, LEADING) if n >= MIN_LEADING else ()
    for name, value, n_sharing, n_having in shared:
        share = n_having / sample.frame.height
        times = n_sharing / n / share if share * n_rows > n_sharing else 0.0
        if times > most_often:
            best = (
                f"{n_sharing:,} of {n:,} flagged rows have {quoted_cell(value)} in {quoted(name)}, "
                f"as about {100 * share:.2g} % of the table do: the group lies apart from the "
                "rest, and other odd rows may stand behind it. To judge its rows among "
                f"themselves, group by {quoted(name)} (--by)."
            )
            most_often = times
    if best:
        yield best


def _common(
    listed: Table, places: IntArray, others: Sequence[str], sample: Table
) -> tuple[str, str, int] | None:
    """Column, value and number of rows that share it; None where none stands out."""
    n, best, rarest = len(places), None, BY_CHANCE
    for name, value, n_sharing, n_having in _shared(listed, places, sample, others, MOST):
        share = (max(n_having - n_sharing, 0) + 1) / (max(sample.frame.height - n, 1) + 1)
        chance = len(others) * float(betainc(n_sharing, n - n_sharing + 1, share))
        if share <= FEW and chance < rarest:
            best, rarest = (name, value, n_sharing), chance
    return best


def _shared(
    listed: Table, places: IntArray, sample: Table, names: Sequence[str], least: float
) -> Iterator[tuple[str, str, int, int]]:
    """Yield the values that so large a part of some rows share, by column.

    With how many of the rows do, and how many of the sample of the table.
    """
    for name in names:
        column = listed.column(name)
        texts = column.texts.gather(places).to_list()
        value, n_sharing = Counter(texts).most_common(1)[0]
        if value is not None and n_sharing >= least * len(texts):
            n_having = int((sample.column(name).texts == value).sum())
            yield name, column.text(int(places[texts.index(value)])), n_sharing, n_having


def _kind(reason: Reason) -> str:
    """Say in a word how a value deviates; values of one kind may go into one pattern."""
    if reason.seen == MISSING:
        return "missing"
    if reason.side:
        return reason.side
    return f"reads {reason.seen_value}" if isinstance(reason.seen_value, str) else "other"


def _alike(
    kinds: tuple[str, ...], rows: list[RankedRow], *, is_date: bool
) -> Iterator[tuple[str, list[RankedRow]]]:
    """Divide rows of the same columns and kinds into patterns, each with what is odd of them."""
    if {*kinds} <= {"above", "below"}:
        for same in _same_values(rows):
            yield _clauses(same, ["same"] * len(kinds)), same
            rows = _without(rows, same)
        if len(kinds) == 1:
            for size, like in _like_factors(rows, is_date=is_date):
                yield _clauses(like, [size]), like
                rows = _without(rows, like)
    if len(rows) >= MIN_ROWS:
        yield _clauses(rows, kinds), rows


def _without(rows: list[RankedRow], taken: list[RankedRow]) -> list[RankedRow]:
    ranks = {odd.rank for odd in taken}
    return [odd for odd in rows if odd.rank not in ranks]


def _same_values(rows: list[RankedRow]) -> Iterator[list[RankedRow]]:
    """Rows that read the same in all columns of the reason, where that is no coincidence.

    Among numbers that deviate to the same side, some agree. Found are those that are half of all
    rows, and those at the far end, as zeros, limits of an instrument and codes for "unknown" are.
    """

    def outwards(odd: RankedRow) -> tuple[float, ...]:
        # Values of the reason, larger the farther they lie to the side they deviate to.
        return tuple(
            reason.seen_value if reason.side == "above" else -reason.seen_value
            for reason in odd.reasons
            if isinstance(reason.seen_value, float)
        )

    by_value: dict[tuple[str, ...], list[RankedRow]] = {}
    for odd in rows:
        by_value.setdefault(tuple(reason.seen for reason in odd.reasons), []).append(odd)
    farthest = max(map(outwards, rows))
    for same in by_value.values():
        at_end = outwards(same[0]) == farthest
        if len(same) >= MIN_ROWS and (2 * len(same) >= len(rows) or at_end):
            yield same


def _like_factors(rows: list[RankedRow], *, is_date: bool) -> Iterator[tuple[str, list[RankedRow]]]:
    """Rows whose value is about the same multiple of what was expected, or as long before it."""
    sized: list[tuple[float, RankedRow]] = []
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
            like = sorted((of_sign[i][1] for i in part), key=lambda odd: odd.rank)
            size = sign * float(np.median(sizes[part]))
            words = _how_far(size, like[0].reasons[0].side, is_date=is_date)
            if words:
                yield f"{words} what the rest suggests", like


def _how_far(size: float, side: str, *, is_date: bool) -> str:
    """Say what multiple of what was expected is read, or how many years lie between dates.

    Empty where "above" or "below" says it as well.
    """
    if is_date:
        years = size / YEAR
        return f"about {_rounded(years)} years {AFTER[side]}" if years >= 2 else ""
    if size >= SMALLEST_FACTOR:
        return f"about {_rounded(size)} times"
    if 0 < size <= 1 / SMALLEST_FACTOR:
        return f"about 1/{_rounded(1 / size)} of"
    return "of the opposite sign of" if 1 / SMALLEST_FACTOR < -size < SMALLEST_FACTOR else ""


def _rounded(size: float) -> str:
    """Write a number from 1 with two significant digits."""
    rounded = float(f"{size:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _clauses(rows: list[RankedRow], kinds: Sequence[str]) -> str:
    """Say what is odd of the columns of some rows, once of columns that are odd alike."""
    names: dict[str, list[str]] = {}
    for place, kind in enumerate(kinds):
        reasons = [odd.reasons[place] for odd in rows]
        clause = CLAUSES.get(kind, f"is {kind}")
        if kind == "same" or kind.startswith("reads "):
            expected = {reason.expected for reason in reasons}
            meant = expected.pop() if len(expected) == 1 else ""
            seen, meant = map(quoted_cell, cut_apart(reasons[0].seen, meant))
            clause = f"reads {seen}" + f" where {meant} was expected" * bool(meant)
        names.setdefault(clause, []).append(quoted(reasons[0].column))
    clauses = [_say_of(of, clause) for clause, of in names.items() if clause not in (ABOVE, BELOW)]
    if ABOVE in names and BELOW in names:
        higher, lower = _say_of(names[ABOVE], "is above"), in_prose(names[BELOW])
        clauses.append(f"{higher} and {lower} {BELOW.removeprefix('is ')}")
    else:
        clauses += [_say_of(names[side], side) for side in (ABOVE, BELOW) if side in names]
    return ", ".join(clauses)


def _say_of(names: Sequence[str], clause: str) -> str:
    """Say one clause of one column, or of several."""
    if len(names) > 1:
        verb, rest = clause.split(" ", 1)
        whose = "all" if len(names) > 2 else "both"
        clause = f"{PLURALS.get(verb, f'{whose} read')} {rest}"
    return f"{in_prose(names)} {clause}"
