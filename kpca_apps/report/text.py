"""Numbers and words as a reader should see them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kpca_apps.names import in_prose as in_prose
from kpca_apps.names import visible

ELLIPSIS = "\u2026"
MOST_READ = 4  # characters read per character shown, as white space is collapsed
MAX_NAME = 60  # characters of a column name or a cell inside a sentence


class Verbatim(str):
    """Text from a table: pages isolate its direction, so that it cannot reorder ours."""

    __slots__ = ()


def number(value: float, digits: int = 3, *, keep_zeros: bool = False) -> str:
    """Write a number with as many significant digits as a reader needs.

    Larger integers keep all their digits; `keep_zeros` writes ``0.4`` as ``0.400``.

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
    """Write a count in full, with thousands separated: ``1,000,000``."""
    return f"{n:,}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun: ``1 row``, ``2,000 rows``."""
    return f"{count(n)} {noun}{'' if n == 1 else 's'}"


def percent(share: float) -> str:
    """Write a share (0..1) as per cent: ``1.2 %``, never a bare 0 for a share above 0."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{number(100 * share, 2 if share < 0.995 else 3)} %"


def ordinal(n: int) -> str:
    """Write a rank: ``1st``, ``12th``, ``23rd``."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def join_parts(items: Sequence[list[str]]) -> list[str]:
    """Join the parts of several things as in prose."""
    parts = list(items[0]) if items else []
    for place, item in enumerate(items[1:], start=2):
        parts += [" and " if place == len(items) else ", ", *item]
    return parts


def cut(text: str, length: int = MAX_NAME) -> Verbatim:
    """Shorten text from a table to at most `length` characters, on one line.

    Invisible characters are written as escapes.
    """
    flat = visible(" ".join(text[: MOST_READ * length].split()))
    return Verbatim(flat if len(flat) <= length else flat[: length - 1].rstrip() + ELLIPSIS)


def writable(text: str) -> str:
    """Replace what cannot be written as UTF-8 (file names may hold undecodable bytes)."""
    return text.encode("utf-8", "replace").decode("utf-8")
