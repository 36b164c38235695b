"""Results of novelty detection as one self-contained HTML page."""

from __future__ import annotations

from typing import Any

from kpca_apps.novelty.result import ComparisonResult, ScreeningResult
from kpca_apps.report.curves import PRECISION, ROC, standing, verdict
from kpca_apps.report.figures import evaluation_drawings, screening_drawings
from kpca_apps.report.hidden import without_hidden, without_hidden_columns
from kpca_apps.report.page import MAX_SENTENCE, make_page, setting_text
from kpca_apps.report.text import MAX_ROWS, cut, headline, plain
from kpca_apps.report.views import (
    MAX_COLUMNS,
    column_views,
    odd_cell_views,
    repeat_views,
    row_views,
)

__all__ = ["render_comparison", "render_screening"]

N_CARDS = 5
N_ODD_CELLS = 5  # of those odd by themselves, outside the fold
MAX_PATTERNS = 5
N_WARNINGS_ON_TOP = 2
MAX_NOTES = 50  # warnings listed in full


def render_screening(result: ScreeningResult) -> str:
    """Render a screening as a page that needs nothing beside itself.

    Parameters
    ----------
    result : ScreeningResult
        Result of a screening; values of hidden columns do not reach the page.

    Returns
    -------
    str
        HTML, under 1 MB however many rows, the same bytes for the same result.
    """
    shown = without_hidden(result)
    rows = row_views(shown, shown.ranked[:MAX_ROWS])
    sentence = headline(shown)
    return make_page(
        "screening.html.j2",
        result=shown,
        title=plain(sentence),
        sentence=sentence,
        cards=row_views(shown, shown.oddest_of_each_kind[:N_CARDS]),
        patterns=[cut(pattern.sentence, MAX_SENTENCE) for pattern in shown.patterns[:MAX_PATTERNS]],
        n_patterns=len(shown.patterns),
        rows=rows,
        n_more_rows=len(shown.scores) - len(rows),
        odd_cells=odd_cell_views(shown.odd_cells),
        n_shown_cells=N_ODD_CELLS,
        cells_in_lines=any(cell.line is not None for cell in shown.odd_cells),
        repeats=repeat_views(shown),
        drawings=screening_drawings(shown),
        sources=[("Table", shown.source)]
        + ([("Reference", shown.reference)] if shown.reference else []),
        **_shared(shown),
    )


def render_comparison(result: ComparisonResult) -> str:
    """Render a comparison with rivals as a page that needs nothing beside itself.

    Parameters
    ----------
    result : ComparisonResult
        Methods judged against known labels.

    Returns
    -------
    str
        HTML, the same bytes for the same result.
    """
    return make_page(
        "comparison.html.j2",
        result=result,
        title=standing(result.evaluations, ROC) or "There is no rival to compare with.",
        by_precision=standing(result.evaluations, PRECISION),
        sources=[("Table", result.source)],
        **_shared(result),
    )


def _shared(result: ScreeningResult | ComparisonResult) -> dict[str, Any]:
    """Gather what both kinds of page show."""
    warnings = [cut(text, MAX_SENTENCE) for text in result.warnings]
    columns = without_hidden_columns(result.columns)
    return {
        "warnings": warnings[:MAX_NOTES],
        "top_warnings": warnings[:N_WARNINGS_ON_TOP],
        "n_warnings": len(warnings),
        "columns": column_views(columns),
        "n_more_columns": max(len(columns) - MAX_COLUMNS, 0),
        "evaluations": [
            {
                "evaluation": evaluation,
                "verdict": verdict(evaluation),
                "drawings": drawings,
                "methods": sorted(evaluation.methods, key=lambda curve: (-curve.auroc, curve.name)),
            }
            for evaluation, drawings in zip(
                result.evaluations, evaluation_drawings(result.evaluations), strict=True
            )
        ],
        "settings": [(key, setting_text(value)) for key, value in sorted(result.settings.items())],
        "versions": sorted(result.versions.items()),
    }
