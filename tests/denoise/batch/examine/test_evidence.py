from dataclasses import asdict, replace

import msgspec
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps.denoise.batch.examine.evidence import FLAT, RISING, WHITE, evidence_of
from kpca_apps.denoise.denoiser import DenoiseInfo, Given, clean_image, measure_noise
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import Evidence

CAMERA = data.camera()[:256, 128:384].astype(float)


def counted(gain: float = 2.0, offset: float = 100.0) -> np.ndarray:
    """Poisson counts with gain and offset, and read noise of standard deviation 3."""
    rng = np.random.default_rng(0)
    light = rng.poisson(CAMERA * 0.5) * gain + offset + rng.normal(0, 3, CAMERA.shape)
    return np.clip(np.rint(light), 0, None).astype(np.uint16)


def test_the_law_of_poisson_noise_is_recorded_with_the_runner_up() -> None:
    found = evidence_of(measure_noise(counted()))
    (law,) = found.laws
    # The variance is gain^2 * counts + 3^2, and the brightness is gain * counts + offset.
    for brightness in (120.0, 200.0, 300.0):
        assert law.variance(brightness) == pytest.approx(2 * (brightness - 100) + 9, rel=0.15)
    assert found.is_law and law.rises and not law.shared
    assert (found.why, found.option) == ("it is stronger where the image is brighter", "")
    assert found.runner_up in (FLAT, WHITE) and found.log_odds is not None
    assert law.deviations[0] < law.deviations[1] < law.deviations[2]


def test_correlated_noise_is_reported_as_correlated() -> None:
    grain = gaussian_filter(np.random.default_rng(1).normal(size=CAMERA.shape), 0.7)
    noisy = np.clip(CAMERA + 12 * grain / grain.std(), 0, 255)
    found = evidence_of(measure_noise(noisy, data_range=255))
    assert found.is_shared == found.laws[0].established
    assert found.laws[0].blur == pytest.approx(0.7, abs=0.11)


def test_constant_white_noise_is_reported_as_not_rising() -> None:
    rng = np.random.default_rng(2)
    info = measure_noise(CAMERA / 2 + 64 + rng.normal(0, 12, CAMERA.shape), data_range=255)
    found = evidence_of(info)
    assert info.noise == "gaussian" and not found.is_law
    assert found.why.startswith("it seems as strong in dark as in bright areas")
    assert found.runner_up == RISING and found.sigma_range == info.sigma_range


def test_an_unchanged_image_has_a_reason_and_an_option() -> None:
    texture = data.gravel()[:96, :96]
    info = measure_noise(texture)
    found = evidence_of(info)
    assert not info.established and found.runner_up == ""
    assert found.why.endswith("fine texture")
    name, value = found.option.split()
    sigma = float(value) if name == "--sigma" else None
    options = Options(quality="fast", noise="auto" if sigma else value)
    assert np.any(clean_image(texture, options, Given(sigma)).at(1.0) != texture)
    faint = replace(info, sigma=0.5)
    assert evidence_of(faint).why == "is too faint to distinguish from fine texture"
    assert evidence_of(faint).option == "--sigma 0.5"
    # Options have no thousands separators or exponents, which the command line would reject.
    deep = replace(info, sigma=12345.6, data_range=65535.0, laws=())
    assert evidence_of(deep).option == "--sigma 12300"
    assert evidence_of(replace(info, sigma=0.0)).option == ""
    # No option removes a printing screen, or noise below the rounding error.
    screen = evidence_of(replace(info, pattern=True))
    assert "regular pattern" in screen.why and screen.option == ""
    assert evidence_of(replace(info, sigma=0.1, laws=())).option == ""


def test_given_or_requested_noise_has_no_runner_up() -> None:
    info = measure_noise(counted())
    assert evidence_of(replace(info, estimated=False)) == Evidence()
    assert evidence_of(replace(info, noise="raw")) == Evidence()
    given = evidence_of(info, "poisson")
    assert (given.why, given.runner_up, given.log_odds) == ("it was requested", "", None)
    assert given.laws


def test_evidence_is_small_and_restored_from_the_record() -> None:
    found = evidence_of(measure_noise(np.dstack([counted()] * 3), channel_axis=-1))
    text = msgspec.json.encode(asdict(found))
    assert msgspec.json.decode(text, type=Evidence) == found
    assert len(found.laws) == 3 and len(text) < 3000
    assert evidence_of(DenoiseInfo("gaussian", 5.0, (5.0,), True, False, 255.0)).laws == ()
