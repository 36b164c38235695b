"""Results as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from kpca_apps.novelty.result import ComparisonResult, ScreeningResult
from kpca_apps.report.curves import PRECISION, ROC, standing, verdict
from kpca_apps.report.drawing import to_svg
from kpca_apps.report.figures import evaluation_drawings, screening_drawings
from kpca_apps.report.hidden import without_hidden, without_hidden_columns
from kpca_apps.report.text import Verbatim, count, cut, headline, number, plain, plural, writable
from kpca_apps.report.views import MAX_COLUMNS, column_views, row_views

__all__ = ["render_comparison", "render_screening"]

N_CARDS = 5
N_WARNINGS_ON_TOP = 2
MAX_NOTES = 50  # warnings listed in full
MAX_SENTENCE = 400  # characters of one warning or setting


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
    rows = row_views(shown)
    sentence = headline(shown)
    return _page(
        "screening.html.j2",
        result=shown,
        title=plain(sentence),
        sentence=sentence,
        cards=rows[:N_CARDS],
        rows=rows,
        n_more_rows=len(shown.scores) - len(rows),
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
    return _page(
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
        "settings": [(key, _setting(value)) for key, value in sorted(result.settings.items())],
        "versions": sorted(result.versions.items()),
    }


def _setting(value: str | float | None) -> str:
    """Write a setting exactly: settings are there to be repeated."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cut(value, MAX_SENTENCE) if isinstance(value, str) else repr(value)


def _page(template: str, **context: Any) -> str:
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    html = (
        _environment()
        .get_template(template)
        .render(
            script=Markup(script),
            script_hash=digest,
            style=Markup(_asset("report.css")),
            **context,
        )
    )
    return writable(html)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kpca_apps.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": count,
        "number": number,
        "plural": plural,
        "cut": cut,
        "sentence": _sentence,
        "svg": to_svg,
    }
    return environment


def _sentence(parts: list[str]) -> Markup:
    """Join the parts of a sentence, isolating the direction of those that came from a table."""
    return Markup("").join(
        Markup("<bdi>{}</bdi>").format(part) if isinstance(part, Verbatim) else escape(part)
        for part in parts
    )


def _asset(name: str) -> str:
    """Read a file of this package's templates folder."""
    return resources.files("kpca_apps.report").joinpath("templates", name).read_text("utf-8")
