"""Numbers and sentences as a reader should see them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kpca_apps.novelty.result import ColumnProfile, RankedRow, Reason, ScreeningResult

__all__ = [
    "Verbatim",
    "count",
    "cut",
    "headline",
    "is_missing",
    "join",
    "number",
    "ordinal",
    "percent",
    "plain",
    "plural",
    "reason_shares",
    "row_name",
    "scores_text",
    "threshold_text",
    "writable",
]

ELLIPSIS = "\u2026"
MAX_DIGITS = 12  # of the largest score, spent on telling scores apart
MAX_ROWS = 100  # ranked rows shown, whose scores are written alike
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


def scores_text(scores: Sequence[float], threshold: float) -> tuple[list[str], str]:
    """Write scores and their threshold alike, with decimals enough to tell apart all that differ.

    Parameters
    ----------
    scores : sequence of float
        Scores shown beside the threshold.
    threshold : float
        May be infinite, where none could be set.

    Returns
    -------
    texts : list of str
        One a score, all with the same number of decimals.
    threshold_text : str
        The threshold, likewise; ``none`` where it is infinite.

    Examples
    --------
    >>> scores_text([1.1052, 1.1043], 1.104)
    (['1.1052', '1.1043'], '1.1040')
    >>> scores_text([51234.5, 2.15043, 2.15041], 1.2)
    (['51,234.50000', '2.15043', '2.15041'], '1.20000')
    >>> scores_text([0.8, 0.3], 0.5)
    (['0.800', '0.300'], '0.500')
    >>> scores_text([0.8], float("inf"))
    (['0.800'], 'none')
    """
    sizes = sorted(abs(v) for v in (*scores, threshold) if math.isfinite(v) and v)
    exponents = [math.floor(math.log10(size)) for size in sizes] or [0]
    # Three digits of a middling score, as the largest may be far larger.
    typical, largest = exponents[len(exponents) // 2], exponents[-1]
    is_plain = -4 <= largest < 15
    most = MAX_DIGITS - 1 - largest if is_plain else MAX_DIGITS - 1
    fewest = min(max(2 - typical, 0), most) if is_plain else 2

    def written(decimals: int) -> list[str]:
        form = f",.{decimals}{'f' if is_plain else 'e'}"
        limit = format(threshold, form) if math.isfinite(threshold) else "none"
        return [*(format(score, form) for score in scores), limit]

    # No more decimals than help: rows equal but for rounding are never told apart.
    choices = map(written, range(max(fewest, 0), max(most, 0) + 1))
    *texts, limit = max(choices, key=lambda texts: len(set(texts)))
    return texts, limit


def threshold_text(result: ScreeningResult) -> str:
    """Write the threshold with the decimals it has beside the ranked rows."""
    return scores_text([row.score for row in result.ranked[:MAX_ROWS]], result.threshold.value)[1]


def is_missing(text: str) -> bool:
    """Tell whether a value seen or expected is none at all."""
    return text.strip() in ("", "missing", "(missing)")


def count(n: int) -> str:
    """Write a count in full, with thousands separated: ``1,000,000``."""
    return f"{n:,}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun: ``1 row``, ``2,000 rows``."""
    return f"{count(n)} {noun}{'' if n == 1 else 's'}"


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


def reason_shares(row: RankedRow) -> list[tuple[Reason, str]]:
    """Write beside each reason of a row its share: once for columns that are odd together."""
    written: list[tuple[Reason, str]] = []
    for reasons in row.reason_sets:
        share = sum(reason.share for reason in reasons)
        text = percent(share) if share else "farthest off"
        if len(reasons) > 1:
            text = f"together {text}"
        written += zip(reasons, [text, *["with the former"] * (len(reasons) - 1)], strict=True)
    return written


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
    n_rows, n_flagged = result.n_rows, result.n_flagged
    found = _found(n_rows, n_flagged)
    if not result.ranked:
        return [found, "."]
    top = result.ranked[0]
    if n_rows == 1:
        return [found, *_because(top, result.columns, ": its ")]
    if n_flagged == 0:
        return [found, "; ", *row_name(top), " comes nearest", *_because(top, result.columns)]
    if n_flagged == 1:
        return [found, ": ", *row_name(top), *_because(top, result.columns, ", whose ")]
    return [found, "; ", *row_name(top), " most", *_because(top, result.columns)]


def _found(n_rows: int, n_flagged: int) -> str:
    """Say how many rows stand out."""
    if n_rows == 1:
        return f"The only row {'stands' if n_flagged else 'does not stand'} out"
    if n_flagged == 0:
        return f"{'Neither' if n_rows == 2 else 'None'} of {plural(n_rows, 'row')} stands out"
    if n_flagged == 1:
        return f"1 of {plural(n_rows, 'row')} stands out"
    if n_flagged == n_rows:
        return "Both rows stand out" if n_rows == 2 else f"All {plural(n_rows, 'row')} stand out"
    return f"{count(n_flagged)} of {plural(n_rows, 'row')} stand out"


def _because(row: RankedRow, columns: Sequence[ColumnProfile], start: str = ": its ") -> list[str]:
    """End the headline with what makes the oddest row odd."""
    if not row.explained:
        return ["."]
    if not row.reasons:
        return [", though every column reads what the rows most like it do."]
    first = row.reason_sets[0]
    if len(first) > 1:
        return _because_together(first, columns, start)
    reason = first[0]
    name = cut(reason.column)
    column = next((c for c in columns if c.name == reason.column), None)
    if column is not None and column.hidden:
        return [", chiefly for its ", name, ", whose values are hidden."]
    what = "text of " if column is not None and column.role == "text" else ""
    expected = ["no value"] if is_missing(reason.expected) else [what, *expected_text(reason)]
    if is_missing(reason.seen):
        return [start, name, " is missing where ", *expected, " was expected."]
    return [start, name, " reads ", cut(reason.seen), " where ", *expected, " was expected."]


def _because_together(
    reasons: Sequence[Reason], columns: Sequence[ColumnProfile], start: str
) -> list[str]:
    """End the headline with the columns that are odd together."""
    hidden = {column.name for column in columns if column.hidden}
    names = _listing([[cut(reason.column)] for reason in reasons])
    if not hidden.isdisjoint(reason.column for reason in reasons):
        return [", chiefly for its ", *names, " together, of which values are hidden."]
    seen = [["no value" if is_missing(r.seen) else cut(r.seen)] for r in reasons]
    expected = [["no value"] if is_missing(r.expected) else expected_text(r) for r in reasons]
    return [
        *(start, *names, " together read ", *_listing(seen)),
        *(" where ", *_listing(expected), " were expected."),
    ]


def _listing(items: Sequence[list[str]]) -> list[str]:
    """Join the parts of several things as in prose."""
    parts = list(items[0])
    for place, item in enumerate(items[1:], start=2):
        parts += [" and " if place == len(items) else ", ", *item]
    return parts
