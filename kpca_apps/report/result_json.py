"""Results as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from kpca_apps.denoise.result import Comparison, DenoisingResult, Preview, TrialResult
from kpca_apps.names import visible_json
from kpca_apps.novelty.result import (
    ComparisonResult,
    ComponentMap,
    ScreenedTables,
    ScreeningDiff,
    ScreeningResult,
)
from kpca_apps.papers.result import GalleryResult, Outcome, Reproduction
from kpca_apps.report.denoising.text import headline as denoising_headline
from kpca_apps.report.document import LEFT_OUT, Document, Fields, Part
from kpca_apps.report.novelty.text import diff_headline, headline, index_headline
from kpca_apps.report.papers.text import headline as gallery_headline
from kpca_apps.report.text import writable

SHARES = {
    "share": "for a reason: its part of the drop in the score when values are replaced by those "
    "expected; columns explained together share it evenly; 0 if nothing lowers the score and the "
    "column is the one farthest from its expected value",
    "share of lists.flagged": "for the first reason only: the sum over its columns",
    "reason_share": "for a column: its part of the reasons of the flagged rows explained",
}
COMPONENTS = Part(
    "Components",
    "The leading kernel components.",
    ((ComponentMap, ("x", "y", "rank", "flagged", "n_rows")),),
)
EXPERIMENT = Part(
    "Experiment",
    "An experiment that was run, or was not, and what it came to.",
    ((Reproduction, ("outcome",)), (Outcome, ("figures",))),
)

Result = (
    ScreeningResult
    | ScreenedTables
    | ScreeningDiff
    | ComparisonResult
    | DenoisingResult
    | TrialResult
    | GalleryResult
)

# Key of an added field -> the field's type, and a function from the result to its value.
Added = dict[str, tuple[Any, Callable[[Any], Any]]]
# Content of `result.json` by type of result: kind, description, fields left out, keys added.
_RESULTS: dict[type, tuple[str, str, Collection[str], Added]] = {
    ScreeningResult: (
        "novelty screening",
        "What a screening found: result.json of kpca novelty screen and score.",
        ("pictures",),
        {
            "sentence": (str, lambda result: "".join(headline(result))),
            "n_rows": (int, attrgetter("n_rows")),
            "n_flagged": (int, attrgetter("n_flagged")),
            "what_shares_are_of": (dict[str, str], lambda result: SHARES),
            "components": (COMPONENTS, lambda result: _fields(COMPONENTS.of, result.pictures.map)),
        },
    ),
    ScreenedTables: (
        "novelty index",
        "Several tables, each screened by itself: index.json of kpca novelty screen --each.",
        (),
        {
            "sentence": (str, index_headline),
            "n_tables": (int, lambda result: len(result.tables)),
            "n_failed": (int, lambda result: len(result.failed)),
        },
    ),
    ScreeningDiff: (
        "novelty diff",
        "Two screenings compared: result.json of kpca novelty diff.",
        (),
        {"sentence": (str, diff_headline)},
    ),
    ComparisonResult: (
        "novelty comparison",
        "The detector beside baselines: result.json of kpca novelty compare.",
        (),
        {},
    ),
    DenoisingResult: (
        "denoising",
        "What became of a batch of images: result.json of kpca denoise run.",
        LEFT_OUT,
        {
            "sentence": (str, lambda result: "".join(denoising_headline(result))),
            "n_images": (int, lambda result: len(result.images)),
            "n_failed": (int, attrgetter("n_failed")),
            "mean_comparison": (Comparison | None, attrgetter("mean_comparison")),
        },
    ),
    TrialResult: (
        "trial of denoising",
        "An image at several strengths: result.json of kpca denoise run --preview.",
        LEFT_OUT,
        {},
    ),
    GalleryResult: (
        "papers",
        "Claims of papers beside our numbers: result.json of kpca papers run.",
        ("reproductions",),
        {
            "sentence": (str, gallery_headline),
            "experiments": (
                [EXPERIMENT],
                lambda result: [
                    _fields(EXPERIMENT.of, one, one.outcome) for one in result.reproductions
                ],
            ),
        },
    ),
}
DOCUMENTS: dict[type, Document] = {
    of: Document(kind, what, ((of, left_out),), {key: one for key, (one, _) in added.items()})
    for of, (kind, what, left_out, added) in _RESULTS.items()
}


def result_to_json(result: Result) -> str:
    """Format a result as JSON with sorted keys.

    Times, the host and resumed images are left out. NaN is ``null``, infinity is ``"inf"``.
    """
    of = next(kind for kind in DOCUMENTS if isinstance(result, kind))
    added = {key: make(result) for key, (_, make) in _RESULTS[of][-1].items()}
    return to_json(DOCUMENTS[of], _fields(DOCUMENTS[of].of, result) | added)


def to_json(document: Document, content: Mapping[str, Any]) -> str:
    """Format a document's header and content as JSON."""
    # Indent with msgspec, which is faster than the json module.
    found = plain({**document.head, **content})
    text = json.dumps(found, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return visible_json(msgspec.json.format(writable(text), indent=1)) + "\n"


def _fields(of: Fields, *values: Any) -> dict[str, Any]:
    """Return fields of several objects as one dict, without left-out fields and pictures."""
    return {
        one.name: plain(getattr(value, one.name))
        for (kind, left_out), value in zip(of, values, strict=True)
        for one in fields(kind)
        if one.name not in left_out and not isinstance(getattr(value, one.name), Preview)
    }


def plain(value: Any) -> Any:
    """Convert result objects, arrays and numbers to JSON types; NaN becomes None."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else f"{value}"
    if isinstance(value, (str, int)) or value is None:
        return value
    if is_dataclass(value):
        return _fields(((type(value), LEFT_OUT),), value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
