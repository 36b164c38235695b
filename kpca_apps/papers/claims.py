"""Judge the claims of ``tables/claims.csv`` by what an experiment measures.

The texts of a claim are formats of the measured values. One with a tolerance is a number, any other
a statement.
"""

from __future__ import annotations

import json

import numpy as np

from kpca_apps.papers.result import Claim, close_to, stated
from kpca_apps.papers.tables import read_table

ABOUT = ("condition", "reason", "source")


class Claims:
    """The claims of one experiment."""

    def __init__(self, experiment: str) -> None:
        rows = (row for row in read_table("claims") if row["experiment"] == experiment)
        self._texts = {row["claim"]: row for row in rows}

    def __call__(self, claim: str, holds: bool | np.bool, *values: object) -> Claim:
        """Judge a statement by whether it holds; the values fill its texts."""
        texts = self._filled(claim, values)
        about = {name: texts[name] for name in ABOUT}
        return stated(texts["what"], texts["paper"], texts["ours"], bool(holds), **about)

    def near(self, claim: str, ours: float, *values: object) -> Claim:
        """Judge a number by the paper's and its tolerance; the values fill those and the texts."""
        texts = self._filled(claim, values)
        paper, tolerance = (json.loads(texts[name]) for name in ("paper", "tolerance"))
        about = {name: texts[name] for name in ABOUT}
        return close_to(texts["what"], paper, ours, tolerance, **about)

    def _filled(self, claim: str, values: tuple[object, ...]) -> dict[str, str]:
        return {head: text.format(*values) for head, text in self._texts[claim].items()}
