import numpy as np
import pytest

from kpca_apps.denoise.passes.scales import average_low_frequencies, halve


@pytest.mark.parametrize("shape", [(32, 32), (33, 32), (32, 35), (65, 81)])
def test_a_ramp_survives_inside(shape: tuple[int, int]) -> None:
    ramp = np.add.outer(np.arange(shape[0]), 2.0 * np.arange(shape[1])).astype(np.float32)
    back = np.zeros((1, *shape), np.float32)
    average_low_frequencies(back, halve(ramp)[None])
    inner = slice(10, shape[0] - 10), slice(10, shape[1] - 10)  # out of reach of the blurred border
    np.testing.assert_allclose(2 * back[0][inner], ramp[inner], rtol=1e-5, atol=1e-3)


def test_noise_stays_white_with_half_the_deviation() -> None:
    half = halve(np.random.default_rng(3).standard_normal((2, 400, 400)).astype(np.float32))
    assert half.std() == pytest.approx(0.5, abs=0.005)
    assert abs(np.mean(half[:, :, 1:] * half[:, :, :-1])) < 0.003
    assert abs(np.mean(half[:, 1:] * half[:, :-1])) < 0.003


def test_low_frequencies_move_halfway_and_high_ones_stay() -> None:
    high = (np.indices((32, 32)).sum(axis=0) % 2).astype(np.float32)
    fine = np.stack([high, high + 6])
    average_low_frequencies(fine, np.stack([halve(high) + 4, halve(high)]))
    np.testing.assert_allclose(fine, np.stack([high + 2, high + 3]), atol=1e-5)
