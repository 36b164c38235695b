"""Results as JSON: what the report says, for programs to read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from kpca_apps.novelty.result import ComparisonResult, ComponentMap, ScreeningResult
from kpca_apps.report.hidden import without_hidden, without_hidden_columns
from kpca_apps.report.text import headline, plain, writable

__all__ = ["result_to_json"]


def result_to_json(result: ScreeningResult | ComparisonResult) -> str:
    """Write a result as JSON, the same bytes for the same result.

    Scores of all rows are in the scored table and points drawn in the figures; neither is repeated
    here. Clock, host and timings are left out. NaN is ``null``, infinity is ``"inf"``.

    Parameters
    ----------
    result : ScreeningResult or ComparisonResult
        The result; values of hidden columns are left out.

    Returns
    -------
    str
        JSON with sorted keys, ending in a line break.
    """
    content = _screening(result) if isinstance(result, ScreeningResult) else _comparison(result)
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return writable(text) + "\n"


def _screening(result: ScreeningResult) -> dict[str, Any]:
    shown = without_hidden(result)
    left_out = {"scores", "p_values", "flagged", "ranks", "map", "contours"}
    content = _fields(shown, left_out)
    content |= {
        "kind": "novelty screening",
        "sentence": plain(headline(shown)),
        "n_rows": len(shown.scores),
        "n_flagged": shown.n_flagged,
        "components": _fields(shown.map, _POINTS),
    }
    return content


def _comparison(result: ComparisonResult) -> dict[str, Any]:
    content = _fields(result, {"columns"})
    content["columns"] = _encode(without_hidden_columns(result.columns))
    content["kind"] = "novelty comparison"
    return content


_POINTS = {field.name for field in fields(ComponentMap)} - {"variances", "gains", "explained"}


def _fields(value: Any, left_out: set[str]) -> dict[str, Any]:
    return {
        field.name: _encode(getattr(value, field.name))
        for field in fields(value)
        if field.name not in left_out
    }


def _encode(value: Any) -> Any:
    """Turn result objects, arrays and numbers into what JSON can hold."""
    if is_dataclass(value):
        return _fields(value, {"seconds"})
    if isinstance(value, np.ndarray | np.generic):
        return _encode(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
