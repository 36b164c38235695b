"""Results as JSON: what the report says, for programs to read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from kpca_apps.denoise.result import DenoisingResult, Preview, TrialResult
from kpca_apps.novelty.result import ComparisonResult, ComponentMap, ScreeningResult
from kpca_apps.papers.result import GalleryResult
from kpca_apps.report.denoising.text import headline as denoising_headline
from kpca_apps.report.novelty.text import headline, without_hidden, without_hidden_columns
from kpca_apps.report.papers.text import headline as gallery_headline
from kpca_apps.report.text import plain, writable

__all__ = ["result_to_json"]

SHARES = {
    "share": "of a reason: of the sum by which the score of the row drops when the values told are "
    "replaced by those expected; that of columns told together is divided evenly among them; 0 "
    "where nothing lowers it and the column told is the one farthest from what is expected",
    "reason_share": "of a column: of the shares of all reasons of the flagged rows explained",
}
LEFT_OUT = frozenset(("seconds", "resumed", "bug", "previews"))


Result = ScreeningResult | ComparisonResult | DenoisingResult | TrialResult | GalleryResult


def result_to_json(result: Result) -> str:
    """Write a result as JSON, the same bytes for the same result.

    Scores of all rows are in the scored table, points and pictures in the figures and the report;
    none is repeated here. Clock, host, timings and what was resumed are left out. NaN is ``null``,
    infinity is ``"inf"``.

    Parameters
    ----------
    result : ScreeningResult, ComparisonResult, DenoisingResult, TrialResult or GalleryResult
        The result; values of hidden columns are left out.

    Returns
    -------
    str
        JSON with sorted keys, ending in a line break.
    """
    content = _content(result)
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return writable(text) + "\n"


def _content(result: Result) -> dict[str, Any]:
    if isinstance(result, ScreeningResult):
        return _screening(result)
    if isinstance(result, DenoisingResult):
        return _denoising(result)
    if isinstance(result, TrialResult):
        return _fields(result, LEFT_OUT) | {"kind": "trial of denoising"}
    if isinstance(result, GalleryResult):
        return _gallery(result)
    return _comparison(result)


def _gallery(result: GalleryResult) -> dict[str, Any]:
    parts = [
        _fields(one, {"outcome"}) | _fields(one.outcome, {"figures"})
        for one in result.reproductions
    ]
    return {
        "kind": "papers",
        "sentence": gallery_headline(result),
        "command": result.command,
        "versions": result.versions,
        "experiments": parts,
        "elsewhere": _encode(result.elsewhere),
        "references": _encode(result.references),
    }


def _denoising(result: DenoisingResult) -> dict[str, Any]:
    return _fields(result, LEFT_OUT) | {
        "kind": "denoising",
        "sentence": denoising_headline(result),
        "n_images": len(result.images),
        "n_failed": result.n_failed,
        "mean_comparison": _encode(result.mean_comparison),
    }


def _screening(result: ScreeningResult) -> dict[str, Any]:
    shown = without_hidden(result)
    left_out = {"scores", "p_values", "rarities", "flagged", "ranks", "map", "contours"}
    content = _fields(shown, left_out)
    content |= {
        "kind": "novelty screening",
        "sentence": plain(headline(shown)),
        "n_rows": shown.n_rows,
        "n_flagged": shown.n_flagged,
        "what_shares_are_of": SHARES,
        "components": _fields(shown.map, _POINTS),
    }
    return content


def _comparison(result: ComparisonResult) -> dict[str, Any]:
    content = _fields(result, {"columns"})
    content["columns"] = _encode(without_hidden_columns(result.columns))
    content["kind"] = "novelty comparison"
    return content


_POINTS = {field.name for field in fields(ComponentMap)} - {"variances", "gains", "explained"}


def _fields(value: Any, left_out: AbstractSet[str]) -> dict[str, Any]:
    return {
        field.name: _encode(getattr(value, field.name))
        for field in fields(value)
        if field.name not in left_out and not isinstance(getattr(value, field.name), Preview)
    }


def _encode(value: Any) -> Any:
    """Turn result objects, arrays and numbers into what JSON can hold."""
    if is_dataclass(value):
        return _fields(value, LEFT_OUT)
    if isinstance(value, np.ndarray | np.generic):
        return _encode(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
