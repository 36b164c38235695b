from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from kpca_apps.system.registers import (
    WIDTH,
    each,
    fill,
    load,
    store,
    total,
    where_above,
    where_longer,
)

made: Any = njit


@made
def computed(a: Any, b: Any, out: Any) -> Any:
    x, y = load(a, (1, 2)), load(b, (0,))
    store(out, (0, 0), x + y * each(a, (2, 3)) - x / y)
    store(out, (1, 1), where_above(x, y, x, y))
    store(out, (2, 0), where_longer(x, y, x, fill(a[0, 0])))
    return total(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_are_what_numpy_says(dtype: type) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 12)).astype(dtype), rng.normal(size=WIDTH).astype(dtype)
    out = np.zeros((3, 10), dtype)
    x = a[1, 2:10]
    assert computed(a, b, out) == pytest.approx(x.sum(), rel=1e-5)
    np.testing.assert_allclose(out[0, :8], x + b * a[2, 3] - x / b, rtol=1e-4)
    np.testing.assert_array_equal(out[1], [0, *np.maximum(x, b), 0])
    np.testing.assert_array_equal(out[2, :8], np.where(abs(x) > abs(b), x, a[0, 0]))
