"""Sentences on the results of novelty detection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from kpca_apps.names import cut_apart
from kpca_apps.novelty.result import (
    ColumnProfile,
    Curves,
    Evaluation,
    RankedRow,
    Reason,
    ScreenedTables,
    ScreeningDiff,
    ScreeningResult,
    Settings,
)
from kpca_apps.report.text import (
    MAX_NAME,
    count,
    cut,
    in_prose,
    join_parts,
    ordinal,
    percent,
    plural,
)

MAX_DIGITS = 12  # maximum number of digits shown of the largest score
# Maximum numbers: scores given enough decimals to differ, rows of a list on a diff page.
MAX_ROWS = 100
MAX_LISTED = 2_000  # maximum number of ranked rows on a page
MAX_NAMED = 3  # maximum number of tables named in a sentence
NOT_COMPARED = " (hidden columns are not compared)"
REST = "(all other groups)"  # name for groups without a separate model
LEAST_SHARE = 0.001  # smallest share of a row's score that is written as a number
BLOCKS = (
    "The score joins p-values of the whole row, of its cells, each given the others, and of the "
    "relations between columns, as the logarithm of the sum of weight / p (Wilson 2019); a cell "
    "rarer than one row in 150 has counts once more. The row's p is that of its kernel PCA error "
    "with a soft cut, E(x) = r + rho (z - mean)' (C + rho I)^-1 (z - mean) (Hoffmann 2007; Rudi et "
    "al. 2017). Those of cells are of their residuals under a kernel that is a sum over columns: "
    "what each column differs by from what all others predict."
)
# Names of areas under curves, by attribute of `Curves`.
AREAS = {"auroc": "area under the ROC curve", "auprc": "average precision"}
WELL_BELOW_CHANCE = 0.4  # an area below this suggests that the label is inverted


def scores_text(scores: Sequence[float], threshold: float) -> tuple[list[str], str]:
    """Format scores and their threshold with enough decimals to tell different values apart.

    Of many scores, only the first `MAX_ROWS` are distinguished.

    >>> scores_text([1.1052, 1.1043], 1.104)
    (['1.1052', '1.1043'], '1.1040')
    >>> scores_text([51234.5, 2.15043, 2.15041], 1.2)
    (['51,234.50000', '2.15043', '2.15041'], '1.20000')
    >>> scores_text([83.31, 25.67], 5.7085)
    (['83.31', '25.67'], '5.71')
    >>> scores_text([0.8], float("inf"))
    (['0.800'], 'none')
    """
    told_apart = scores[:MAX_ROWS]
    sizes = sorted(abs(v) for v in (*told_apart, threshold) if math.isfinite(v) and v)
    exponents = [math.floor(math.log10(size)) for size in sizes] or [0]
    # Show three digits of the threshold and of the median score; the largest may have more.
    typical, largest = exponents[len(exponents) // 2], exponents[-1]
    if math.isfinite(threshold) and threshold:
        typical = min(typical, math.floor(math.log10(abs(threshold))))
    is_plain = -4 <= largest < 15
    most = MAX_DIGITS - 1 - largest if is_plain else MAX_DIGITS - 1
    fewest = min(max(2 - typical, 0), most) if is_plain else 2

    def written(decimals: int, scores: Sequence[float] = told_apart) -> list[str]:
        form = f",.{decimals}{'f' if is_plain else 'e'}"
        limit = format(threshold, form) if math.isfinite(threshold) else "none"
        return [*(format(score, form) for score in scores), limit]

    # Use no more decimals than needed.
    decimals = max(
        range(max(fewest, 0), max(most, 0) + 1), key=lambda decimals: len({*written(decimals)})
    )
    *texts, limit = written(decimals, scores)
    return texts, limit


def threshold_text(result: ScreeningResult) -> str:
    """Format the threshold with the same decimals as the scores of the ranked rows."""
    return scores_text([row.score for row in result.ranked[:MAX_ROWS]], result.threshold.value)[1]


def is_missing(text: str) -> bool:
    """Return whether an actual or expected value is missing."""
    return text.strip() in ("", "missing", "(missing)")


def file_of(row: RankedRow, file_column: str | None) -> str:
    """Return the file that a row came from; empty if the file column is absent or hidden."""
    return dict(row.cells).get(file_column or "", "")


def row_name(row: RankedRow, file_column: str | None = None) -> list[str]:
    """Return the identifier and the position of a row, as parts."""
    place, line = f"row {count(row.row)}", f"line {count(row.line or 0)}"
    if file := file_of(row, file_column):
        line += f" of {cut(file, 40)}"
    if row.id:
        return [cut(row.id, 40), f" ({place if row.line is None else line})"]
    return [place if row.line is None else f"{place} ({line})"]


def expected_text(reason: Reason) -> list[str]:
    """Return two texts: "about " or nothing, and the expected value, cut if long."""
    is_number = isinstance(reason.expected_value, float | int)
    about = "about " if is_number and not reason.expected.startswith("about") else ""
    return [about, cut(reason.expected)]


def reason_shares(row: RankedRow) -> list[tuple[Reason, str]]:
    """Format the share of each reason of a row."""
    written: list[tuple[Reason, str]] = []
    for reasons in row.reason_sets:
        text = share_words(sum(reason.share for reason in reasons), row)
        if len(reasons) > 1:
            text = f"together {text}"
        written += zip(reasons, [text, *["included above"] * (len(reasons) - 1)], strict=True)
    return written


def share_words(share: float, row: RankedRow) -> str:
    """Format a share of a row's score, in words if it is small."""
    if share >= LEAST_SHARE:
        return percent(share)
    return "little effect" if any(one.share for one in row.reasons) else "farthest off"


def headline(result: ScreeningResult) -> list[str]:
    """State the result in one sentence, as a list of parts."""
    n_rows, n_flagged = result.n_rows, result.n_flagged
    found, n_cells = _found(n_rows, n_flagged), result.n_listed - n_flagged
    if n_cells and n_rows > 1:
        others = f" and {count(n_cells)} more" if n_flagged else f", but {count(n_cells)}"
        found += f"{others} {'has' if n_cells == 1 else 'have'} an odd cell"
    if not result.ranked:
        return [found, "."]
    top = result.ranked[0]
    named, because = row_name(top, result.source.file_column), _because(top, result.columns)
    if n_rows == 1:
        return [found, *because]
    if result.n_listed == 1:
        return [found, ": ", *named, *_because(top, result.columns, ", whose ")]
    if result.n_listed:
        return [found, "; ", *named, " most", *because]
    return [too_few(result) or found, "; ", *named, " comes nearest", *because]


def too_few(result: ScreeningResult) -> str:
    """State that there are too few reference rows for the rule to flag a row; else return ""."""
    rule, setting = result.threshold.rule, result.threshold.setting
    if math.isfinite(result.threshold.value) or not result.threshold.n_calibration:
        return ""
    errors = "false discoveries" if rule == "fdr" else "false alarms"
    n = result.threshold.n_calibration
    are = f"{plural(n, 'reference row')} {'is' if n == 1 else 'are'}"
    return f"Nothing can be flagged: {are} too few for {percent(setting)} {errors} ({rule})"


def _found(n_rows: int, n_flagged: int) -> str:
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
    """Complete the headline with the reason of the oddest row."""
    if not row.explained:
        return ["."]
    if not row.reasons:
        return [", though every column reads what the rows most like it do."]
    first = [_cut_apart(reason) for reason in row.reason_sets[0]]
    profiles = {column.name: column for column in columns}
    of_first = [profiles.get(reason.column) for reason in first]
    names = join_parts([[cut(reason.column)] for reason in first])
    together = [" together"] * (len(first) > 1)
    if any(profile is not None and profile.hidden for profile in of_first):
        rest = ", of which values are hidden." if together else ", whose values are hidden."
        return [", chiefly for its ", *names, *together, rest]
    expected = []
    for reason, profile in zip(first, of_first, strict=True):
        is_text = profile is not None and profile.role == "text" and not together
        what = ["text of "] * is_text
        value = [*what, *expected_text(reason)]
        expected.append(["no value"] if is_missing(reason.expected) else value)
    where = [" where ", *join_parts(expected), " were expected." if together else " was expected."]
    if is_missing(first[0].seen) and not together:
        return [start, *names, " is missing", *where]
    seen = [["no value" if is_missing(reason.seen) else cut(reason.seen)] for reason in first]
    read = " read " if together else " reads "
    return [start, *names, *together, read, *join_parts(seen), *where]


def _cut_apart(reason: Reason) -> Reason:
    if max(len(reason.seen), len(reason.expected)) <= MAX_NAME:
        return reason
    seen, expected = cut_apart(reason.seen, reason.expected, MAX_NAME)
    return replace(reason, seen=seen, expected=expected)


def standing(evaluations: Sequence[Evaluation], area: str) -> str:
    """State the rank of our detector in each test, by an area under a curve.

    The sentence is empty if there is no baseline.
    """
    places = {}
    for number, evaluation in enumerate(evaluations, 1):
        ahead, level, _ = _baselines(evaluation, area)
        place, n = ordinal(1 + len(ahead)), len(evaluation.methods)
        beside = in_prose([cut(baseline.name) for baseline in level])
        if n > 1:
            places[number] = (
                f"shares {place} place of {n} with {beside}" if level else f"comes {place} of {n}"
            )
    if not places:
        return ""
    summary = in_prose([f"{place} in test {number}" for number, place in places.items()])
    if len(evaluations) == 1:
        summary = places[1]
    elif len(places) > 1 and len(set(places.values())) == 1:
        tests = "both tests" if len(places) == 2 else "every test"
        summary = f"{min(places.values())} in {tests}"
    return f"By {AREAS[area]}, {cut(evaluations[0].methods[0].name)} {summary}."


def verdict(evaluation: Evaluation) -> str:
    """State the rank of our detector among all methods, by both areas of `AREAS`.

    A hint follows if the known outliers have low scores.
    """
    ours, sentences = evaluation.methods[0], []
    if len(evaluation.methods) > 1:
        by_roc, by_pr = _place(ours.name, evaluation, "auroc"), _place("it", evaluation, "auprc")
        sentences.append(f"By {AREAS['auroc']} {by_roc}; by {AREAS['auprc']} {by_pr}.")
    if ours.auroc < WELL_BELOW_CHANCE:
        sentences.append(
            f"An area of {ours.auroc:.3f}, well below 0.5, means that the known outliers score "
            "lower than the other rows: perhaps another value of the label is the one that means "
            "outlier, or these outliers lie where rows are densest."
        )
    return " ".join(sentences)


def _baselines(evaluation: Evaluation, area: str) -> list[list[Curves]]:
    """Return the baselines whose area is above, equal to (to .001) and below ours, best first."""
    ours, *baselines = evaluation.methods
    of = attrgetter(area)
    baselines.sort(key=lambda baseline: (-of(baseline), baseline.name))
    signs = [np.sign(round(of(one), 3) - round(of(ours), 3)) for one in baselines]
    pairs = list(zip(baselines, signs, strict=True))
    return [[baseline for baseline, sign in pairs if sign == wanted] for wanted in (1, 0, -1)]


def _place(name: str, evaluation: Evaluation, area: str) -> str:
    ahead, level, behind = (
        [f"{baseline.name} ({getattr(baseline, area):.3f})" for baseline in group]
        for group in _baselines(evaluation, area)
    )
    place, n = ordinal(1 + len(ahead)), len(evaluation.methods)
    takes = f"shares {place} place of {n} with {in_prose(level)}" if level else f"is {place} of {n}"
    others = [f"behind {in_prose(ahead)}"] * bool(ahead)
    others += [f"ahead of {in_prose(behind)}"] * bool(behind)
    own = f"{name} ({getattr(evaluation.methods[0], area):.3f})"
    return f"{own} {': '.join(filter(None, [takes, ', '.join(others)]))}"


def method_sentence(settings: Settings) -> str:
    """Describe the score, with its references."""
    if settings.get("method") == "hoffmann":
        return (
            "Method: hoffmann. The score is the reconstruction error of the whole row alone: p(x) "
            f"= |phi(x) - mean|^2 - sum of t_a(x)^2 over {settings['components']} components, with "
            f"the kernel {settings['kernel']} on standardised columns (H. Hoffmann, Kernel PCA for "
            "novelty detection, Pattern Recognition 40, 2007). Odd cells and rules are no part of "
            "it."
        )
    return "Method: blocks. " + BLOCKS if settings.get("method") == "blocks" else ""


def oddest_row(result: ScreeningResult) -> str:
    """Name the oddest row and its reason."""
    if not result.ranked:
        return ""
    top = result.ranked[0]
    parts = [*row_name(top, result.source.file_column), *_because(top, result.columns)]
    return "".join(parts).rstrip(".")


def index_headline(index: ScreenedTables) -> str:
    """Summarise several tables, each screened separately, in one sentence."""
    done, failed = index.screened, index.failed
    if not done:
        n = len(failed)
        who = "The table could not" if n == 1 else f"None of {plural(n, 'table')} could"
        return f"{who} be screened."
    n_rows, n_flagged = (sum(getattr(t, name) for t in done) for name in ("n_rows", "n_flagged"))
    n_odd = sum(one.n_odd_cells for one in done)
    flagged = f"{_found(n_rows, n_flagged)} in {plural(len(done), 'table')}"
    odd = f", and {plural(n_odd, 'cell')} {'is' if n_odd == 1 else 'are'} odd" * bool(n_odd)
    moved = [cut(one.name, 40) for one in done if one.moved]
    n_more = len(moved) - MAX_NAMED
    named = in_prose([*moved[:MAX_NAMED], *[f"{count(n_more)} more"] * (n_more > 0)])
    drift = f"; columns moved in {named}" if moved else ""
    if not moved and any(one.before for one in done):
        drift = "; no column moved"
    if any(one.hidden_columns for one in done):
        drift += NOT_COMPARED
    missed = f"; {plural(len(failed), 'table')} could not be screened" * bool(failed)
    return f"{flagged}{odd}{drift}{missed}."


def diff_headline(diff: ScreeningDiff) -> str:
    """Summarise the differences between two screenings in one sentence."""
    n_moved = len(diff.moved)
    moved = "no column moved" if not n_moved else f"{plural(n_moved, 'column')} moved"
    moved += NOT_COMPARED * bool(diff.hidden_columns)
    if diff.is_apart:
        now, before = (
            f"{count(run.n_flagged)} of {count(run.n_rows)}" for run in (diff.new, diff.old)
        )
        return f"No row is in both tables: {now} rows are flagged now, {before} before; {moved}."
    new = f"{plural(len(diff.appeared), 'row')} {'is' if len(diff.appeared) == 1 else 'are'} new"
    n_removed = len(diff.removed)
    removed = f"{count(n_removed)} {'is' if n_removed == 1 else 'are'} no longer on it"
    stayed = f"{count(len(diff.stayed))} stayed"
    return f"{new} on the list, {removed}, {stayed}; {moved}."
