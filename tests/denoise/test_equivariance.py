"""Invariances of denoising for any image: units, origins, memory layouts, magnitudes.

Longer run: ``pytest -n0 --hypothesis-profile long tests/denoise/test_equivariance.py``.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.options import METHODS
from kpca_apps.errors import KpcaError
from tests.quick import examples

NOISES = ("gaussian", "poisson", "speckle", "impulse", "camera", "auto")
LEVEL = {"speckle": 0.2}  # relative to the intensity; for other kinds, tests use 15 grey levels

noises = st.sampled_from(NOISES)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def pictures(draw: st.DrawFn) -> tuple[np.ndarray, int | None]:
    """Draw a small picture of integers, at least one of them negative, and its channel axis."""
    height, width = draw(st.integers(6, 14)), draw(st.integers(6, 16))
    rng = np.random.default_rng(draw(seeds))
    rows, columns = np.indices((height, width))
    kind = draw(st.sampled_from(["ramp", "edge", "texture", "points", "noise"]))
    clean = {
        "ramp": 8.0 * (rows + columns),
        "edge": 200.0 * (columns > width // 2),
        "texture": 100.0 + 80.0 * np.sin(rows) * np.cos(2.0 * columns),
        "points": 250.0 * (rng.random((height, width)) < 0.05),
        "noise": np.full((height, width), 100.0),
    }[kind]
    axis = draw(st.sampled_from([None, None, None, -1]))
    shape = clean.shape if axis is None else (*clean.shape, 3)
    noisy = (clean if axis is None else clean[..., np.newaxis]) + rng.normal(0, 15, shape)
    noisy.ravel()[0] = -20.0  # below 0, so that no image is taken for one in 0..1
    return np.round(noisy), axis


def draft(image: np.ndarray, axis: int | None, noise: str, **options: Any) -> np.ndarray:
    """Denoise with quality "draft" and without warnings."""
    return denoise_with_info(image, channel_axis=axis, noise=noise, quality="draft", **options)[0]


@examples(15)
@given(pictures(), noises, st.integers(-90, 90), st.booleans(), st.booleans())
def test_the_unit_has_no_influence(drawn, noise, exponent, is_known, has_range):
    """Results are bitwise equal, as scaling by powers of two is exact."""
    (image, axis), unit = drawn, 2.0**exponent
    level = LEVEL.get(noise, 15.0)
    known, scaled = {}, {}
    if is_known:
        known = {"sigma": level}
        scaled = {"sigma": level if noise == "speckle" else level * unit}
    if has_range:
        known, scaled = known | {"data_range": 512.0}, scaled | {"data_range": 512.0 * unit}
    plain, rescaled = (
        draft(image, axis, noise, **known), draft(image * unit, axis, noise, **scaled)
    )  # fmt: skip
    np.testing.assert_array_equal(rescaled, plain * unit)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [1 / 255, 257.0])
def test_other_units_change_the_result_by_rounding_only(method, unit):
    """The image has strokes, on which kernels of finite bandwidth differ from `linear`."""
    rows, columns = np.indices((48, 64))
    clean = 200.0 * ((rows + 2 * columns) % 17 < 4)
    noisy = clean + np.random.default_rng(0).normal(0, 15, clean.shape)
    plain, rescaled = (
        draft(noisy * u, None, "gaussian", method=method, sigma=15 * u, data_range=255 * u)
        for u in (1.0, unit)
    )
    np.testing.assert_allclose(rescaled / unit, plain, rtol=0, atol=1e-3)
    if method != "linear":
        linear = draft(noisy, None, "gaussian", method="linear", sigma=15, data_range=255)
        assert np.abs(plain - linear).max() > 0.5


@examples(15)
@given(pictures(), st.sampled_from(["gaussian", "impulse", "camera"]), st.integers(-(2**40), 2**40))
def test_the_origin_has_no_influence_on_additive_noise(drawn, noise, origin):
    image, axis = drawn
    # Integers are exact up to 2^53; adding the origin back rounds once.
    near, moved = (draft(image + far, axis, noise, sigma=15.0) for far in (0.0, float(origin)))
    bound = 2 * np.spacing(float(np.abs(image).max()) + abs(origin))
    np.testing.assert_allclose(moved - origin, near, rtol=0, atol=bound)


def strided(image: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n + 1 for n in image.shape], image.dtype)
    part = wide[tuple(slice(1, None, 2) for _ in image.shape)]
    part[...] = image
    return part


def read_only(image: np.ndarray) -> np.ndarray:
    fixed = image.copy()
    fixed.setflags(write=False)
    return fixed


LAYOUTS = (
    np.asfortranarray,
    strided,
    read_only,
    lambda image: image[::-1, ::-1].copy()[::-1, ::-1],
    lambda image: image.astype(image.dtype.newbyteorder()),
)


@examples(10)
@given(
    pictures(),
    st.sampled_from(LAYOUTS),
    noises,
    st.sampled_from(["f4", "f8", "i2", "u1", "u2"]),
    st.booleans(),
)
def test_layouts_of_memory_change_no_bit(drawn, layout, noise, dtype, is_known):
    (image, axis), sigma = drawn, LEVEL.get(noise, 15.0) if is_known else None
    image = np.clip(image, 0, 255).astype(dtype) if dtype[0] == "u" else image.astype(dtype)
    given_as = layout(image)
    before = given_as.copy()
    result, expected = (draft(given, axis, noise, sigma=sigma) for given in (given_as, image))
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(given_as, before)


@examples(25)
@given(
    pictures(),
    noises,
    st.sampled_from(["f2", "f4", "f8", "i4", "u1", "g"]),
    st.integers(-320, 308),
    st.sampled_from([0.0, 0.0, 1.0, -1e3, 1e8, 1e15]),
    st.sampled_from([None, 0.0, 1e-300, 1e-3, 15.0, 1e300]),
    st.sampled_from([None, None, 1e-30, 1.0, 255.0, 1e30]),
)
@pytest.mark.filterwarnings("ignore:sigma .* is less than one step:UserWarning")
def test_any_magnitude_is_denoised_or_refused_in_one_line(
    drawn, noise, dtype, exponent, offset, sigma, data_range
):
    image, axis = drawn
    with np.errstate(all="ignore"):
        image = (
            (image + offset) * 10.0 ** float(max(exponent, -308)) * 10.0 ** min(exponent + 308, 0)
        )
        limits = np.iinfo(dtype) if dtype[0] in "iu" else np.finfo(dtype)
        image = np.clip(image, float(limits.min), float(limits.max)).astype(dtype)
    try:
        out = draft(image, axis, noise, sigma=sigma, data_range=data_range)
    except KpcaError as error:
        assert "\n" not in str(error)
        return
    assert out.shape == image.shape
    assert np.isfinite(out).all()
