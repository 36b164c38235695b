"""Results as JSON: what the report says, for programs to read."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

from kpca_apps.denoise.result import DenoisingResult, Preview, TrialResult
from kpca_apps.novelty.result import ComparisonResult, ScreeningDiff, ScreeningResult
from kpca_apps.papers.result import GalleryResult
from kpca_apps.report.denoising.text import headline as denoising_headline
from kpca_apps.report.novelty.text import (
    diff_headline,
    headline,
)
from kpca_apps.report.papers.text import headline as gallery_headline
from kpca_apps.report.text import writable

SHARES = {
    "share": "of a reason: of the sum by which the score of the row drops when the values told are "
    "replaced by those expected; that of columns told together is divided evenly among them; 0 "
    "where nothing lowers it and the column told is the one farthest from what is expected",
    "share of flagged_rows": "of the first reason alone, the sum over its columns",
    "reason_share": "of a column: of the shares of all reasons of the flagged rows explained",
}
# Of no result: what differs from run to run, and pictures, which the page holds.
LEFT_OUT = ("seconds", "resumed", "bug", "previews")
# Of a screening: a number a row stands in the scored table; the map and contours are figures.
DRAWN = (
    *("scores", "p_values", "rarities", "is_flagged", "is_accepted", "ranks"),
    *("map", "contours", "plane"),
)

Result = (
    ScreeningResult
    | ScreeningDiff
    | ComparisonResult
    | DenoisingResult
    | TrialResult
    | GalleryResult
)


def result_to_json(result: Result) -> str:
    """Write a result as JSON with sorted keys, the same bytes for the same result.

    Clock, host, timings and what was resumed are left out. NaN is ``null``, infinity is ``"inf"``.
    """
    if isinstance(result, ScreeningResult):
        content = _fields(result, DRAWN) | {
            "kind": "novelty screening",
            "sentence": "".join(headline(result)),
            "n_rows": result.n_rows,
            "n_flagged": result.n_flagged,
            "what_shares_are_of": SHARES,
            "components": {
                name: plain(getattr(result.map, name))
                for name in ("variances", "gains", "explained")
            },
        }
    elif isinstance(result, ScreeningDiff):
        content = _fields(result) | {"kind": "novelty diff", "sentence": diff_headline(result)}
    elif isinstance(result, ComparisonResult):
        content = _fields(result) | {"kind": "novelty comparison"}
    elif isinstance(result, DenoisingResult):
        content = _fields(result, LEFT_OUT) | {
            "kind": "denoising",
            "sentence": denoising_headline(result),
            "n_images": len(result.images),
            "n_failed": result.n_failed,
            "mean_comparison": plain(result.mean_comparison),
        }
    elif isinstance(result, TrialResult):
        content = _fields(result, LEFT_OUT) | {"kind": "trial of denoising"}
    else:
        content = _fields(result, ("reproductions",)) | {
            "kind": "papers",
            "sentence": gallery_headline(result),
            "experiments": [
                _fields(one, ("outcome",)) | _fields(one.outcome, ("figures",))
                for one in result.reproductions
            ],
        }
    # Indented by json itself, lists of many rows would be written in Python.
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return msgspec.json.format(writable(text), indent=1) + "\n"


def _fields(value: Any, left_out: Collection[str] = ()) -> dict[str, Any]:
    values = {one.name: getattr(value, one.name) for one in fields(value)}
    return {
        name: plain(item)
        for name, item in values.items()
        if name not in left_out and not isinstance(item, Preview)
    }


def plain(value: Any) -> Any:
    """Turn result objects, arrays and numbers into what JSON can hold: NaN is null."""
    if isinstance(value, str | bool | int) or value is None:  # most are
        return value
    if is_dataclass(value):
        return _fields(value, LEFT_OUT)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
