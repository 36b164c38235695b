"""Judge the claims of ``tables/claims.csv`` by measured values.

The texts of a claim are format strings for the measured values. A claim with a tolerance is a
number, any other claim a statement. A condition is an assumption that the paper does not state.
"""

from __future__ import annotations

import json

import numpy as np

from kpca_apps.papers.result import Claim, Verdict
from kpca_apps.papers.tables import read_table


def judge(claim: str, holds: bool | np.bool, *values: object) -> Claim:
    """Return the verdict on a statement; ``values`` fill the placeholders of its texts."""
    texts = _filled(claim, values)
    return Claim(texts["what"], texts["paper"], texts["ours"], None, *_verdict(holds, texts))


def compare(claim: str, ours: float, *values: object) -> Claim:
    """Compare a number with the paper's value, within its tolerance."""
    texts = _filled(claim, values)
    paper, tolerance = (json.loads(texts[name]) for name in ("paper", "tolerance"))
    verdict = _verdict(abs(ours - paper) <= tolerance, texts)
    return Claim(texts["what"], paper, ours, tolerance, *verdict)


def _filled(claim: str, values: tuple[object, ...]) -> dict[str, str]:
    row = next(row for row in read_table("claims") if row["claim"] == claim)
    return {head: text.format(*values) for head, text in row.items()}


def _verdict(holds: bool | np.bool, texts: dict[str, str]) -> tuple[Verdict, str, str]:
    if not holds:
        return "not reproduced", texts["reason"] or texts["condition"], texts["source"]
    condition = texts["condition"]
    return "reproduced with a condition" if condition else "reproduced", condition, texts["source"]
