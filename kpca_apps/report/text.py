"""Numbers and sentences as a reader should see them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason, ScreeningResult

__all__ = [
    "Verbatim",
    "apart",
    "count",
    "cut",
    "headline",
    "join",
    "number",
    "ordinal",
    "percent",
    "plain",
    "row_name",
    "writable",
]

ELLIPSIS = "\u2026"
MAX_NAME = 60  # characters of a column name or a cell inside a sentence


class Verbatim(str):
    """Text taken from a table: pages isolate its direction, so that it cannot reorder ours."""

    __slots__ = ()


def number(value: float, digits: int = 3, *, keep_zeros: bool = False) -> str:
    """Write a number with as many significant digits as a reader needs.

    Parameters
    ----------
    value : float
        Any number; infinities and NaN get words.
    digits : int
        Significant digits; whole numbers above them keep all of theirs.
    keep_zeros : bool
        Whether ``0.4`` is written ``0.400``, for columns of figures.

    Examples
    --------
    >>> number(0.123456), number(1950.4), number(1e-9), number(float("inf"))
    ('0.123', '1,950', '1e-09', 'infinite')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent >= 15 or exponent < -4:
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - exponent, 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text and not keep_zeros else text


def apart(value: float, other: float) -> tuple[str, str]:
    """Write two numbers with enough digits to tell them apart.

    Examples
    --------
    >>> apart(0.31245, 0.31243)
    ('0.3125', '0.3124')
    >>> apart(0.8, 0.3)
    ('0.800', '0.300')
    """
    for digits in range(3, 17):
        pair = number(value, digits, keep_zeros=True), number(other, digits, keep_zeros=True)
        if pair[0] != pair[1] or value == other:
            break
    return pair


def count(n: int) -> str:
    """Write a count in full, with thousands separated: ``1,000,000``."""
    return f"{n:,}"


def percent(share: float) -> str:
    """Write a share (0..1) as per cent: ``1.2 %``, never a bare 0 for something present."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{number(100 * share, 2 if share < 0.995 else 3)} %"


def ordinal(n: int) -> str:
    """Write a place in a ranking: ``1st``, ``12th``, ``23rd``."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def join(names: Sequence[str]) -> str:
    """Join names as in prose: ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def cut(text: str, length: int = MAX_NAME) -> Verbatim:
    """Shorten text from a table to at most `length` characters, on one line."""
    flat = " ".join(text.split())
    return Verbatim(flat if len(flat) <= length else flat[: length - 1].rstrip() + ELLIPSIS)


def writable(text: str) -> str:
    """Replace what cannot be written as UTF-8 (file names may hold undecodable bytes)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(parts: Iterable[str]) -> str:
    """Join the parts of a sentence, for places that cannot mark whose words they are."""
    return "".join(parts)


def row_name(row: RankedRow) -> list[str]:
    """Name a row in a sentence, by its identifier where it has one."""
    if row.id:
        return [f"row {count(row.row)} (", cut(row.id, 40), ")"]
    return [f"row {count(row.row)}"]


def expected_text(reason: Reason) -> list[str]:
    """Return the expected value; a number is only ever *about* right."""
    is_number = isinstance(reason.expected_value, float | int)
    about = "about " if is_number and not reason.expected.startswith("about") else ""
    return [about, cut(reason.expected)]


def headline(result: ScreeningResult) -> list[str]:
    """Say what was found in one sentence, in parts; `Verbatim` parts came from the table.

    Parameters
    ----------
    result : ScreeningResult
        Result of a screening.

    Returns
    -------
    list of str
        Parts of the sentence, to be joined without separator.
    """
    n_rows, n_flagged = len(result.scores), result.n_flagged
    rows = f"{count(n_rows)} {'row' if n_rows == 1 else 'rows'}"
    if not result.ranked:
        verb = "stands" if n_flagged == 1 else "stand"
        return [f"{count(n_flagged) if n_flagged else 'None'} of {rows} {verb} out."]
    top = result.ranked[0]
    because = _because(top, result.columns)
    if n_flagged == 0:
        return [f"None of {rows} stands out; ", *row_name(top), " comes nearest", *because]
    if n_flagged == 1:
        return [f"1 of {rows} stands out: ", *row_name(top), *because]
    amount = "All" if n_flagged == n_rows else f"{count(n_flagged)} of"
    return [f"{amount} {rows} stand out; ", *row_name(top), " most", *because]


def _because(row: RankedRow, columns: Sequence[ColumnProfile]) -> list[str]:
    """End the headline with what makes the oddest row odd."""
    if not row.explained:
        return ["."]
    if not row.reasons:
        return [", though no single column explains why."]
    reason = row.reasons[0]
    name = cut(reason.column)
    if any(column.hidden and column.name == reason.column for column in columns):
        return [": mostly for its ", name, ", whose values are hidden."]
    expected = [*expected_text(reason), " was expected."]
    if not reason.seen.strip() or reason.seen == "missing":
        return [": its ", name, " is missing where ", *expected]
    return [": its ", name, " reads ", cut(reason.seen), " where ", *expected]
