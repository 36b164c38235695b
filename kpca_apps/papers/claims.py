"""Judge the claims of ``tables/claims.csv`` by what experiments measure.

The texts of a claim are formats of the measured values. One with a tolerance is a number, any other
a statement. A condition is what had to be assumed beyond the paper, a reason why it does not hold.
"""

from __future__ import annotations

import json

import numpy as np

from kpca_apps.papers.result import Claim, Verdict
from kpca_apps.papers.tables import read_table


def judged(claim: str, holds: bool | np.bool, *values: object) -> Claim:
    """Judge a statement by whether it holds; the values fill its texts."""
    texts = _filled(claim, values)
    return Claim(texts["what"], texts["paper"], texts["ours"], None, *_verdict(holds, texts))


def near(claim: str, ours: float, *values: object) -> Claim:
    """Judge a number by the paper's and its tolerance; the values fill those and the texts."""
    texts = _filled(claim, values)
    paper, tolerance = (json.loads(texts[name]) for name in ("paper", "tolerance"))
    verdict = _verdict(abs(ours - paper) <= tolerance, texts)
    return Claim(texts["what"], paper, ours, tolerance, *verdict)


def _filled(claim: str, values: tuple[object, ...]) -> dict[str, str]:
    row = next(row for row in read_table("claims") if row["claim"] == claim)
    return {head: text.format(*values) for head, text in row.items()}


def _verdict(holds: bool | np.bool, texts: dict[str, str]) -> tuple[Verdict, str, str]:
    """Return verdict, why, and source."""
    if not holds:
        return "not reproduced", texts["reason"] or texts["condition"], texts["source"]
    condition = texts["condition"]
    return "reproduced with a condition" if condition else "reproduced", condition, texts["source"]
