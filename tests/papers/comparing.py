import json
from typing import Any

import numpy as np

from tests.engine.examples import ORACLES


def misc_oracle() -> dict[str, Any]:
    """Load small cases that were computed exactly."""
    return dict(json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8")))


def tiny_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return the seven training and three test points of the reference results."""
    with np.load(ORACLES / "tiny_kpca_mp50.npz") as oracle:
        return oracle["X"], oracle["T"]


def clouds(n=150, seed=0):
    """Draw rows in three plane clouds of different size and width."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 3.0], [2.6, -1.5], [-2.6, -1.5]])
    which = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return centres[which] + rng.normal(size=(n, 2)) * np.array([0.5, 0.8, 1.1])[which, None]
