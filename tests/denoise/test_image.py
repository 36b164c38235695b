"""The one rule for the range of an image's values."""

from __future__ import annotations

import numpy as np
import pytest

from kpca_apps.denoise.batch.inputs import widest_range
from kpca_apps.denoise.denoiser import dtype_range, read_picture, value_range
from kpca_apps.denoise.dictionary import unit_of


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.array([[False, True]]), (1.0, 0.0)),
        (np.array([[3, 7]], np.uint8), (255.0, 0.0)),
        (np.array([[3, 7]], np.uint16), (65535.0, 0.0)),
        (np.array([[3, 7]], np.int16), (65535.0, -32768.0)),
        (np.array([[-3, 7]], np.int32), (10.0, -3.0)),
        (np.array([[0.25, 0.5]]), (1.0, 0.0)),
        (np.array([[-0.25, 0.5]]), (0.75, -0.25)),
        (np.array([[4.0, 4.0]]), (1.0, 4.0)),
    ],
)
def test_range_of_values(pixels: np.ndarray, expected: tuple[float, float]) -> None:
    assert value_range(pixels) == expected
    picture = read_picture(pixels)
    assert (picture.data_range, picture.lowest) == expected
    assert widest_range([pixels, pixels]) == expected[0]
    assert unit_of(pixels, None) == (dtype_range(pixels.dtype) or 1.0)
    assert value_range(pixels, 500.0) == (500.0, expected[1])
