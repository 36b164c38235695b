"""A combined score as the arrays of a model file, and back: nothing in a file is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.memory import available_bytes
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE
from kpca_apps.novelty.surprise.cells import CellModel
from kpca_apps.novelty.surprise.combined import CombinedScore
from kpca_apps.novelty.surprise.features import DEGREE, AdditiveFeatures
from kpca_apps.novelty.surprise.residuals import SMALLEST_DEVIATION, ColumnResiduals
from kpca_apps.novelty.surprise.tails import (
    LARGEST_EXPONENT,
    LEAST_REACH,
    SHARES,
    CountedTail,
    ExponentialTail,
    TwoTails,
    UpperTail,
)

__all__ = ["combined_state", "restore_combined"]

Arrays = dict[str, NDArray[Any]]

WHOLE = ("number", "polynomial", "indicator", "source", "state", "group")
# Parts that are squared, or added up, for every row.
BOUNDED = (
    "moments", "mean", "deviation", "height", "given_others.knots", "alone.knots", "curves.knots",
    "tails",
)  # fmt: skip
# Shares are counted among fewer rows than e^50; weights are about 1.
LARGEST_SURPRISE, LARGEST_WEIGHT = 50.0, 100.0
# Matrices of the features of one group that are in memory at once, to predict them together.
SQUARES_HELD = 4


def combined_state(combined: CombinedScore) -> Arrays:
    """Return all that was learned, as arrays by name."""
    cells = combined.cells
    uppers = (combined.error, combined.mean, combined.scatter)
    curves = (*(upper.counted for upper in uppers), *cells.states)
    tails = (*(upper.beyond for upper in uppers), combined.oddest)
    return {
        **{field.name: getattr(cells.map, field.name) for field in fields(cells.map)},
        "n": np.array([cells.residuals.n]),
        "mean": cells.residuals.mean,
        "deviation": cells.residuals.deviation,
        "factor": cells.residuals.factor,
        "given_others.knots": cells.given_others.knots,
        "given_others.exponents": cells.given_others.exponents,
        "alone.knots": cells.alone.knots,
        "alone.exponents": cells.alone.exponents,
        "height": cells.height,
        "share": cells.share,
        "usual": cells.usual,
        # One after the other: errors, means, scatters, then the states.
        "curves.size": np.array([len(curve.knots) for curve in curves]),
        "curves.knots": np.concatenate([curve.knots for curve in curves]),
        "curves.surprise": np.concatenate([curve.surprise for curve in curves]),
        # Of errors, means, scatters and oddest cells.
        "tails": np.array([[tail.zero, tail.slope] for tail in tails]),
        "weights": combined.weights,
    }


def restore_combined(arrays: Mapping[str, NDArray[Any]], n_columns: int) -> CombinedScore:
    """Rebuild what `combined_state` gave, for rows of `n_columns` columns.

    Raises
    ------
    KeyError, ValueError
        If it is no such thing.
    """
    whole = (*WHOLE, "n", "curves.size")
    for name, array in arrays.items():
        if array.dtype != (np.int64 if name in whole else np.float64):
            raise ValueError(f"{name} is of the wrong type")
    v, a, p = (len(arrays[name]) for name in ("number", "indicator", "group"))
    state = arrays["state"]
    n_curves = 3 + (int(state.max()) + 1 if a else 0)
    sizes = arrays["curves.size"]
    shapes = {
        "number": (v,), "polynomial": (v,), "scale": (6, v, 1), "moments": (2, DEGREE, v, 1),
        "indicator": (a,), "source": (a,), "equals": (a,), "state": (a,), "group": (p,),
        "n": (1,), "mean": (p,), "deviation": (p,), "factor": (len(arrays["factor"]), p),
        "given_others.knots": (v, 2 * len(SHARES) - 1), "given_others.exponents": (v, 2),
        "alone.knots": (v, 2 * len(SHARES) - 1), "alone.exponents": (v, 2),
        "height": (a, 1), "share": (a, 1), "usual": (2, v, 1), "curves.size": (n_curves,),
        "curves.knots": (sizes.sum(),), "curves.surprise": (sizes.sum(),),
        "tails": (4, 2), "weights": (3,),
    }  # fmt: skip
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    # NaN is a value of `equals`; a number that hardly ever varies has no usual scatter.
    free = ("equals", "usual")
    wrong += [n for n in shapes if n not in free and not np.isfinite(arrays[n]).all()]
    positions = {
        "number": n_columns, "source": n_columns, "polynomial": p - DEGREE + 1, "indicator": p,
        "state": a, "group": p + n_columns,
    }  # fmt: skip
    wrong += [n for n, end in positions.items() if ((arrays[n] < 0) | (arrays[n] >= end)).any()]
    wrong += [n for n in ("state", "group") if (np.diff(arrays[n]) < 0).any()]
    wrong += [] if wrong else _beyond_bounds(arrays)
    if wrong or (sizes < 1).any() or arrays["n"][0] < 2 or (np.diff(state, prepend=-1) > 1).any():
        raise ValueError(f"parts of the combined score do not fit: {', '.join(wrong)}")
    _refuse_larger_than_memory(arrays["group"])
    ends = np.cumsum(sizes)[:-1]
    curves = [
        CountedTail(knots, surprise)
        for knots, surprise in zip(
            np.split(arrays["curves.knots"], ends),
            np.split(arrays["curves.surprise"], ends),
            strict=True,
        )
    ]
    if any((np.diff(c.knots) <= 0).any() or (np.diff(c.surprise) < 0).any() for c in curves):
        raise ValueError("what was counted of the combined score is out of order")
    *beyond, oddest = (ExponentialTail(*tail) for tail in arrays["tails"].tolist())
    names = [field.name for field in fields(AdditiveFeatures)]
    cells = CellModel(
        map=AdditiveFeatures(**{name: arrays[name] for name in names}),
        residuals=ColumnResiduals(
            int(arrays["n"][0]),
            *(arrays[name] for name in ("mean", "deviation", "factor", "group")),
        ),
        given_others=TwoTails(arrays["given_others.knots"], arrays["given_others.exponents"]),
        alone=TwoTails(arrays["alone.knots"], arrays["alone.exponents"]),
        height=arrays["height"],
        share=arrays["share"],
        states=tuple(curves[3:]),
        usual=arrays["usual"],
    )
    error, mean, scatter = map(UpperTail, curves[:3], beyond)
    return CombinedScore(cells, error, mean, scatter, oddest, arrays["weights"])


def _beyond_bounds(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """Name the parts with values no fit leads to, of which some rows would have no score."""
    at, scale, usual = arrays["polynomial"], arrays["scale"], arrays["usual"]
    features = np.concatenate([*(at + degree for degree in range(DEGREE)), arrays["indicator"]])
    whole = np.arange(len(arrays["group"]))
    exponents = np.stack([arrays["given_others.exponents"], arrays["alone.exponents"]])
    quantiles = np.stack([arrays["given_others.knots"], arrays["alone.knots"]])
    surprise, slope = arrays["curves.surprise"], arrays["tails"][:, 1]
    sound = {
        "positions of features": np.array_equal(np.sort(features), whole),
        "number": len(np.unique(arrays["number"])) == len(arrays["number"]),
        "equals": not np.isinf(arrays["equals"]).any(),
        "scale": (scale[[1, 5]] > 0).all() and (scale[2] <= scale[3]).all(),
        "moments": (arrays["moments"][1] > 0).all(),
        # A number of which no row is usual has an infinite distance.
        "usual": np.isfinite(usual[0]).all() and (usual[1] > 0).all(),
        "deviation": (arrays["deviation"] >= SMALLEST_DEVIATION).all(),
        "factor": (np.abs(arrays["factor"]) <= 1.0 + 1e-6).all(),
        "exponents": ((exponents >= 0) & (exponents <= LARGEST_EXPONENT)).all(),
        "quantiles": (np.diff(quantiles) >= 0).all(),
        "curves.surprise": ((surprise >= 0) & (surprise <= LARGEST_SURPRISE)).all(),
        "tails": ((slope >= 0) & (slope <= LARGEST_SURPRISE / LEAST_REACH)).all(),
        "height": (arrays["height"] > 0).all(),
        "share": ((arrays["share"] > 0) & (arrays["share"] <= 2.0)).all(),
        "weights": ((arrays["weights"] > 0) & (arrays["weights"] <= LARGEST_WEIGHT)).all(),
    }
    large = [name for name in BOUNDED if (np.abs(arrays[name]) > LARGEST_TO_SQUARE).any()]
    return large + [name for name, is_sound in sound.items() if not is_sound]


def _refuse_larger_than_memory(group: NDArray[np.int64]) -> None:
    """Refuse features predicted together that would need more memory than there is."""
    n_together = int(np.unique(group, return_counts=True)[1].max(initial=0))
    needed = SQUARES_HELD * 8 * n_together**2
    if needed > available_bytes():
        raise ValueError(
            f"{n_together:,} features of one group of columns need {needed / 1e9:.1f} GB of memory"
        )
