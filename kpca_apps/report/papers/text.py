"""Sentences and table cells of the papers' page."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

from kpca_apps.papers.result import Claim, GalleryResult, Reproduction, Verdict
from kpca_apps.report.text import count, in_prose, number, plural

MARKS: dict[Verdict, str] = {
    "reproduced": "\u2713",
    "reproduced with a condition": "\u2713*",
    "not reproduced": "\u2717",
    "not run": "\u2013",
}  # so that verdicts are not shown by colour alone
DIGITS = 4


def headline(result: GalleryResult) -> str:
    """Summarise in one sentence how many claims of the papers were reproduced."""
    judged = {verdict: result.count(verdict) for verdict in MARKS}
    n_all = sum(judged.values()) - judged["not run"]
    if not n_all:
        return "No claim could be tried."
    came = [
        (judged["reproduced"], "as published"),
        (judged["reproduced with a condition"], "with a condition"),
    ]
    (n_first, how), *others = [pair for pair in came if pair[0]] or came[:1]
    verb = "is" if 1 in (n_first, n_all) else "are"
    parts = [f"{count(n_first)} of {plural(n_all, 'claim')} {verb} reproduced {how}"]
    parts += [f"{count(n)} {how}" for n, how in others]
    if n := judged["not reproduced"]:
        parts.append(f"{count(n)} {'is' if n == 1 else 'are'} not")
    return f"{', '.join(parts)}."


def left_out(result: GalleryResult) -> str:
    """State how many experiments gave no result; empty if all gave a result."""
    n_all, lost = len(result.reproductions), [o.name for o in result.reproductions if o.is_untried]
    parts = []
    if result.n_failed:
        parts.append(f"{count(result.n_failed)} of {plural(n_all, 'experiment')} could not be run")
    if lost:
        parts.append(f"{in_prose(lost)} cannot be tried: the data cannot be had")
    return f"{'; '.join(parts)}." if parts else ""


def standing(reproduction: Reproduction) -> str:
    """State how many claims of one experiment were reproduced."""
    found = Counter(claim.verdict for claim in reproduction.outcome.claims)
    return in_prose([f"{count(found[verdict])} {verdict}" for verdict in MARKS if found[verdict]])


def work_of(paper: str) -> tuple[str, str]:
    """Split a source into the work with its year, and the part of the work.

    >>> work_of("Author (2001), Fig. 1"), work_of("Notes, Example"), work_of("All papers")
    (('Author (2001)', 'Fig. 1'), ('Notes', 'Example'), ('All papers', ''))
    """
    work, bracket, part = paper.partition(")" if ")" in paper else ",")
    return work + bracket.strip(","), part.lstrip(", ")


def cell(value: float | str, tolerance: float | None, *, known: bool = False) -> str:
    """Format a claim's value with the decimals that its tolerance requires.

    A `known` value, quoted from a paper, keeps its own decimals if the tolerance requires more.

    >>> cell(0.03809, 0.005), cell(3.0, 0.0), cell(4.44e-15, 1e-10), cell("nicely", None)
    ('0.0381', '3', '4.4e-15', 'nicely')
    >>> cell(1.6, 0.08, known=True), cell(1.58, 0.08)
    ('1.6', '1.580')
    """
    if isinstance(value, str):
        return value
    if not tolerance:
        return number(value, DIGITS)
    if abs(value) < tolerance / 100:
        return number(value, 2)
    decimals = max(math.ceil(-math.log10(tolerance)), 0) + 1
    if known:
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        decimals = min(decimals, max(-int(exponent), math.floor(-math.log10(tolerance)), 0))
    return f"{value:,.{decimals}f}"


def tolerance(claim: Claim) -> str:
    """Format the largest difference for which two numbers count as equal."""
    if claim.tolerance is None:
        return ""
    return "exact" if claim.tolerance == 0 else f"\u00b1 {number(claim.tolerance, 2)}"
