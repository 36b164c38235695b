"""A combined score as the arrays of a model file, and back: nothing in a file is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.surprise.cells import CellModel
from kpca_apps.novelty.surprise.combined import CombinedScore
from kpca_apps.novelty.surprise.features import DEGREE, AdditiveFeatures
from kpca_apps.novelty.surprise.residuals import ColumnResiduals
from kpca_apps.novelty.surprise.tails import SHARES, TwoTails, UpperTail

__all__ = ["combined_state", "restore_combined"]

Arrays = dict[str, NDArray[Any]]

WHOLE = ("number", "polynomial", "indicator", "source", "state", "group")


def combined_state(combined: CombinedScore) -> Arrays:
    """Return all that was learned, as arrays by name."""
    cells = combined.cells
    curves = (combined.error, combined.mean, combined.scatter, *cells.states)
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
        "curves.slope": np.array([curve.slope for curve in curves]),
        "oddest": combined.oddest,
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
        "curves.slope": (n_curves,), "oddest": (2,), "weights": (3,),
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
    wrong += [n for n in ("deviation", "height", "weights") if (arrays[n] <= 0).any()]
    if wrong or (sizes < 1).any() or arrays["n"][0] < 2 or (np.diff(state, prepend=-1) > 1).any():
        raise ValueError(f"parts of the combined score do not fit: {', '.join(wrong)}")
    ends = np.cumsum(sizes)[:-1]
    curves = [
        UpperTail(knots, surprise, float(slope))
        for knots, surprise, slope in zip(
            np.split(arrays["curves.knots"], ends),
            np.split(arrays["curves.surprise"], ends),
            arrays["curves.slope"],
            strict=True,
        )
    ]
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
    error, mean, scatter = curves[:3]
    return CombinedScore(cells, error, mean, scatter, arrays["oddest"], arrays["weights"])
