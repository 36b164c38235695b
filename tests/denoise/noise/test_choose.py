"""Which noise is measured if the kind or the level of an image's noise is given."""

from typing import Any

import numpy as np
import pytest

from kpca_apps.denoise.denoiser import denoise_with_info
from kpca_apps.denoise.image import Axes, read_picture
from kpca_apps.denoise.noise import choose
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import NoiseLaw

IMAGE = 100 + 10 * np.random.default_rng(0).standard_normal((40, 44, 3))


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record one entry per measurement of white noise."""
    times: list[int] = []

    def measured(planes: Any) -> Any:
        times.append(1)
        return measure_white(planes)

    measure_white = choose.measure_white
    monkeypatch.setattr(choose, "measure_white", measured)
    return times


def test_white_noise_is_measured_only_if_level_or_kind_is_unknown(measurements: list[int]) -> None:
    for noise, sigma, times in (
        ("gaussian", 10.0, 0),
        ("camera", 10.0, 0),
        ("poisson", 10.0, 0),
        ("auto", [10.0, 9.0, 11.0], 0),  # a level for each channel implies white noise
        ("auto", 10.0, 1),
        ("gaussian", None, 1),
        ("poisson", None, 1),
        ("camera", None, 0),
    ):
        measurements.clear()
        denoise_with_info(
            IMAGE, sigma=sigma, noise=noise, strength=0, data_range=255, channel_axis=-1
        )
        assert len(measurements) == times, (noise, sigma)


def test_known_laws_need_no_measurement(measurements: list[int]) -> None:
    grey = IMAGE[..., 0]
    picture = read_picture(grey[np.newaxis, np.newaxis], Axes.of(grey.shape, None, None), 255.0)
    seen = (0.0, 255.0)
    law = NoiseLaw(0.5, 1.0, 0.0, (1.0, 1.0), True, False, 0.0, 0.0, seen, seen)
    assert choose.inspect(picture, Options(), None, [law]).noise == "poisson"
    assert not measurements


def test_the_image_is_denoised_by_the_detected_kind() -> None:
    found, info = denoise_with_info(
        IMAGE, sigma=10, data_range=255, channel_axis=-1, quality="draft"
    )
    named, _ = denoise_with_info(
        IMAGE, sigma=10, noise="gaussian", data_range=255, channel_axis=-1, quality="draft"
    )
    assert info.noise == "gaussian"
    np.testing.assert_array_equal(found, named)
