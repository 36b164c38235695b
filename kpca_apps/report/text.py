"""Format numbers and words for readers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kpca_apps.names import in_prose as in_prose
from kpca_apps.names import visible

ELLIPSIS = "\u2026"
MOST_READ = 4  # characters read per character shown, as white space is collapsed
MAX_NAME = 60  # characters of a column name or a cell in a sentence


class Verbatim(str):
    """Text from a table, put into a ``<bdi>`` element in pages, as it may run right to left."""

    __slots__ = ()


def number(value: float, digits: int = 3, *, keep_zeros: bool = False) -> str:
    """Format a number with the significant digits that a reader needs.

    Longer integers keep all digits; `keep_zeros` gives ``0.400`` for ``0.4``.

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


def count(n: int) -> str:
    """Format a count in full, with thousands separators: ``1,000,000``."""
    return f"{n:,}"


def plural(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 row``, ``2,000 rows``."""
    return f"{count(n)} {noun}{'' if n == 1 else 's'}"


def percent(share: float) -> str:
    """Format a share (0..1) in per cent: ``1.2 %``; a share above 0 never becomes 0."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{number(100 * share, 2 if share < 0.995 else 3)} %"


def ordinal(n: int) -> str:
    """Format a rank: ``1st``, ``12th``, ``23rd``."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def join_parts(items: Sequence[list[str]]) -> list[str]:
    """Join several items, each a list of parts, as in prose."""
    parts = list(items[0]) if items else []
    for place, item in enumerate(items[1:], start=2):
        parts += [" and " if place == len(items) else ", ", *item]
    return parts


def cut(text: str, length: int = MAX_NAME) -> Verbatim:
    """Shorten text from a table to at most `length` characters, on one line.

    Invisible characters become escapes.
    """
    flat = visible(" ".join(text[: MOST_READ * length].split()))
    return Verbatim(flat if len(flat) <= length else flat[: length - 1].rstrip() + ELLIPSIS)


def writable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode (file names may contain undecodable bytes)."""
    return text.encode("utf-8", "replace").decode("utf-8")
