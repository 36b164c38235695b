from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table

__all__ = ["changed", "correlated", "frame_of"]


def frame_of(n: int, seed: int = 0, *, odd: int = 0) -> pl.DataFrame:
    """Return birds with three correlated measures, which disagree in the last `odd` rows."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    columns = [size + 0.1 * rng.normal(size=n) for _ in range(3)]
    columns[1][n - odd :] = np.where(size[n - odd :] > 0, -6.0, 6.0)
    return pl.DataFrame(
        {
            "name": [f"bird {i:04d}" for i in range(n)],
            "wing": columns[0] * 10 + 100,
            "bill": columns[1] + 12,
            "mass": columns[2] * 300 + 4000,
            "colour": rng.choice(["black", "white"], n),
            "kind": ["odd" if i >= n - odd else "usual" for i in range(n)],
        }
    )


def correlated(n: int, seed: int = 0, *, odd: int = 0) -> Table:
    """Return the columns of `frame_of` as a `Table`."""
    return table_from_frame(frame_of(n, seed, odd=odd), "birds")


def changed(result: ScreeningResult, **fields: Any) -> ScreeningResult:
    """Replace fields of a screening or of the objects it contains."""
    for name in ("rows", "lists", "findings", "pictures", "run"):
        value = getattr(result, name)
        own = {field: fields.pop(field) for field in vars(value).keys() & fields.keys()}
        fields[name] = replace(value, **own)
    return replace(result, **fields)
