"""Claims and tables of the papers' experiments as the page lays them out."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from string import ascii_lowercase

from kpca_apps.papers.figures import Table
from kpca_apps.papers.result import Claim
from kpca_apps.report.gallery_text import MARKS, cell, tolerance

__all__ = ["ClaimLine", "TableView", "claim_lines", "table_view"]

# A number, a per cent, or what stands where there is none; two may be joined.
JOINED = re.compile(r" / | \u00b1 ")
NUMBER = re.compile(r"[-+\u00b1<]? ?[\d.,]*\d(e[-+]?\d+)?( ?%)?")
NONE = frozenset(("", "-", "\u2013", "n.a.", "none"))


@dataclass(frozen=True)
class ClaimLine:
    """One claim as a line of a table.

    Attributes
    ----------
    what, paper, ours, tolerance, mark, verdict : str
    origin : str
        Where the value to come near is from, and of which text; empty if read in the paper.
    why : str
        What of the condition or the reason is not told under the table.
    note : str
        Letters of the notes under the table that tell the rest; empty if there is none.
    """

    what: str
    paper: str
    origin: str
    ours: str
    tolerance: str
    mark: str
    verdict: str
    why: str
    note: str


@dataclass(frozen=True)
class TableView:
    """A table, and which of its columns hold numbers.

    Attributes
    ----------
    table : Table
    numeric : tuple of bool
        One for each column.
    """

    table: Table
    numeric: tuple[bool, ...]


def claim_lines(
    claims: tuple[Claim, ...],
) -> tuple[tuple[ClaimLine, ...], tuple[tuple[str, str], ...]]:
    """Lay out claims; what several have in common is told once.

    Parameters
    ----------
    claims : tuple of Claim

    Returns
    -------
    lines : tuple of ClaimLine
    notes : tuple of (str, str)
        Letter and text of what more than one claim has for a condition or reason.

    Examples
    --------
    >>> told = [Claim("a", 1.0, 1.0, 0.1, "reproduced with a condition", "smoothed")] * 2
    >>> lines, notes = claim_lines(tuple(told))
    >>> [line.note for line in lines], notes
    (['a', 'a'], (('a', 'smoothed'),))
    """
    often = [why for why, n in Counter(r for one in claims for r in one.reasons).items() if n > 1]
    letters = dict(zip(often, ascii_lowercase, strict=False))
    lines = tuple(
        ClaimLine(
            one.what,
            cell(one.paper, one.tolerance, known=True),
            "; ".join(_origin_of(one)),
            cell(one.ours, one.tolerance),
            tolerance(one),
            MARKS[one.verdict],
            one.verdict,
            "; ".join(why for why in one.reasons if why not in letters),
            ", ".join(letters[why] for why in one.reasons if why in letters),
        )
        for one in claims
    )
    return lines, tuple((letter, why) for why, letter in letters.items())


def _origin_of(claim: Claim) -> list[str]:
    """Return the words under the value to come near."""
    origin = "" if claim.origin == "the paper" else claim.origin
    return [words for words in (origin, claim.source) if words]


def table_view(table: Table) -> TableView:
    """Tell the columns of numbers, which stand on the right, from those of words.

    Parameters
    ----------
    table : Table

    Examples
    --------
    >>> table_view(Table("", ("a", "b"), (("PCA", "8.7 / 8.57"), ("Parzen", "n.a.")))).numeric
    (False, True)
    """
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.heads)
    return TableView(table, tuple(all(map(_is_number, column)) for column in columns))


def _is_number(text: str) -> bool:
    return all(part in NONE or NUMBER.fullmatch(part) for part in JOINED.split(text))
