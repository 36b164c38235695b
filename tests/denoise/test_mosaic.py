import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.data import astronaut, coffee

from kpca_apps import denoise_mosaic
from kpca_apps.denoise.mosaic import clean_mosaic, inverse_generalised_anscombe, measure_mosaic
from kpca_apps.denoise.noise.poisson import anscombe
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.patterns import BAYER, merged, split
from kpca_apps.errors import ConfigError, InputError
from tests.images.dng import NEUTRAL, XTRANS, exposed, mosaic_of

A, B = 1 / 200, 1e-4  # slope and constant of the noise variance: 200 photons at white


@pytest.fixture(scope="module")
def light() -> NDArray[np.float64]:
    """A photograph as linear light (h, w, 3), in 0..1."""
    return np.asarray((astronaut()[:112, 140:268] / 255.0) ** 2.2 * NEUTRAL)


def error(found: NDArray[np.floating], mosaic: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(found - mosaic))))


@pytest.mark.parametrize("pattern", [*BAYER, XTRANS])
def test_noise_is_removed_for_any_pattern(light: NDArray[np.float64], pattern: str) -> None:
    mosaic = mosaic_of(light, pattern)
    noisy = exposed(mosaic, A, B)
    found = denoise_mosaic(noisy, pattern=pattern, noise=(A, B), quality="fast")
    assert found.shape == noisy.shape and found.dtype == np.float32
    # X-Trans has red at only two of nine pixels, so larger errors are allowed.
    assert error(found, mosaic) < (0.54 if len(pattern) == 4 else 0.6) * error(noisy, mosaic)


@pytest.mark.parametrize("pattern", ["GBRG", XTRANS])
@pytest.mark.parametrize("phase", [(0, 0), (1, 1), (0, 1)])
def test_planes_have_one_colour_each_and_hold_every_pixel(
    pattern: str, phase: tuple[int, int]
) -> None:
    colours = np.stack(np.broadcast_arrays(*[[[[value]]] for value in (1.0, 2.0, 3.0)]), axis=-1)
    mosaic = mosaic_of(np.broadcast_to(colours[0], (31, 44, 3)), pattern).astype(np.float32)
    planes = split(mosaic, pattern, phase)
    assert np.array_equal(planes, np.broadcast_to(planes[:, :1, :1], planes.shape))
    numbers = np.arange(mosaic.size, dtype=np.float32).reshape(mosaic.shape)
    assert np.array_equal(
        merged(split(numbers, pattern, phase), mosaic.shape, pattern, phase), numbers
    )


@pytest.mark.release
@pytest.mark.parametrize("cut", [np.s_[1:, :], np.s_[:, 1:], np.s_[1:-2, 1:]])
def test_a_mosaic_may_begin_and_end_at_any_pixel(
    light: NDArray[np.float64], cut: tuple[slice, slice]
) -> None:
    mosaic = mosaic_of(light)
    noisy = exposed(mosaic, A, B)
    first_row, first_column = cut[0].start or 0, cut[1].start or 0
    pattern = "".join(
        "RGGB"[2 * ((y + first_row) % 2) + (x + first_column) % 2] for y in (0, 1) for x in (0, 1)
    )
    options = {"noise": (A, B), "quality": "fast"}
    whole = denoise_mosaic(noisy, **options)[cut]
    part = denoise_mosaic(noisy[cut], pattern=pattern, **options)
    assert error(part, mosaic[cut]) == pytest.approx(error(whole, mosaic[cut]), rel=0.05)


@pytest.mark.parametrize("added", [0.0, 1.0, 4.0, 100.0, 1e4])
def test_the_transform_has_noise_of_1_and_an_exact_inverse(added: float) -> None:
    for mean in (0.0, 0.7, 3.0, 20.0, 300.0):
        rng = np.random.default_rng(0)
        counts = rng.poisson(mean, 400_000) + np.sqrt(added) * rng.standard_normal(400_000)
        roots = anscombe(counts, added)
        deviation = float(np.std(roots))
        # The deviation of `roots` is 1, or less where almost no photons were counted.
        assert (0.95 if added > 2 or mean > 2 else 0.0) <= deviation < 1.03
        back = float(inverse_generalised_anscombe(roots.mean(), added))
        assert back == pytest.approx(mean, abs=4 * np.sqrt((mean + added) / 4e5) + 0.02)


@pytest.mark.parametrize("photons", [0.5, 3.0, 30.0])
def test_constant_light_gives_its_mean(photons: float) -> None:
    mosaic = np.full((128, 128), photons)
    noisy = exposed(mosaic, 1.0, 0.25)
    found = denoise_mosaic(noisy, noise=(1.0, 0.25), quality="fast")
    assert found.mean() == pytest.approx(noisy.mean(), rel=0.02)
    assert error(found, mosaic) < 0.15 * error(noisy, mosaic)


@pytest.mark.parametrize(("a", "b"), [(1 / 100, 1e-4), (1 / 400, 1e-4), (1 / 1000, 1e-3)])
@pytest.mark.parametrize("photograph", [astronaut, coffee])
def test_measured_noise_is_near_the_truth(photograph: object, a: float, b: float) -> None:
    scene = photograph()[:400] / 255.0  # type: ignore[operator]
    mosaic = mosaic_of(scene**2.2 * NEUTRAL)
    noisy = exposed(mosaic, a, b).astype(np.float32)
    info, curves = measure_mosaic(noisy, "RGGB", np.inf)
    for brightness in (0.02, 0.2, 0.6):
        truth = np.sqrt(a * brightness + b)
        found = np.sqrt(curves[0, 0] * brightness + curves[0, 1])
        assert found == pytest.approx(truth, rel=0.15)
    assert info.sigma == pytest.approx(np.sqrt(np.mean(a * mosaic + b)), rel=0.1) and info.estimated
    found = measure_mosaic(noisy, "RGGB", np.inf, np.tile([a, b], (3, 1)))[0]
    assert not found.estimated and found.sigma == pytest.approx(
        np.sqrt(np.mean(a * mosaic + b)), rel=0.01
    )


def test_measured_noise_denoises_like_known_noise(light: NDArray[np.float64]) -> None:
    mosaic = mosaic_of(light)
    noisy = exposed(mosaic, A, B)
    known = denoise_mosaic(noisy, noise=(A, B), quality="fast")
    assert error(denoise_mosaic(noisy, quality="fast"), mosaic) < 1.1 * error(known, mosaic)


def test_units_and_black_do_not_matter(light: NDArray[np.float64]) -> None:
    noisy = exposed(mosaic_of(light), A, B)
    found = denoise_mosaic(noisy, quality="fast")
    scaled = denoise_mosaic(500 + 4000 * noisy, black=500, quality="fast")
    np.testing.assert_allclose((scaled - 500) / 4000, found, atol=1e-3)


@pytest.mark.release
@pytest.mark.parametrize("pattern", BAYER)
def test_each_colour_has_its_own_noise(pattern: str) -> None:
    mosaic = np.full((128, 128), 0.5)
    curves = np.array([[0, 1e-2], [0, 1e-4], [0, 4e-2]])
    deviation = np.sqrt(mosaic_of(np.broadcast_to(curves[:, 1], (128, 128, 3)), pattern))
    noisy = mosaic + deviation * np.random.default_rng(0).standard_normal(mosaic.shape)
    found = denoise_mosaic(noisy, pattern=pattern, noise=curves, quality="fast")
    for place in np.ndindex(2, 2):
        own = np.s_[place[0] :: 2, place[1] :: 2]
        assert error(found[own], mosaic[own]) < 0.15 * error(noisy[own], mosaic[own])
    silent = curves * [[1], [0], [1]]
    noisy[deviation == 0.01] = 0.5
    found = denoise_mosaic(noisy, pattern=pattern, noise=silent, quality="fast")
    np.testing.assert_allclose(found[deviation == 0.01], 0.5, atol=1e-3)
    assert error(found, mosaic) < 0.2 * error(noisy, mosaic)


def test_saturated_pixels_stay_saturated(light: NDArray[np.float64]) -> None:
    mosaic = mosaic_of(1.6 * light)
    noisy = np.minimum(exposed(mosaic, A, B), 0.7)
    found = denoise_mosaic(noisy, white=0.7, noise=(A, B), quality="fast")
    burnt = noisy >= 0.7
    assert 0.02 < burnt.mean() < 0.9
    np.testing.assert_array_equal(found[burnt], noisy[burnt].astype(np.float32))
    shifted = denoise_mosaic(noisy + 0.1, black=0.1, white=0.7 + 0.1, noise=(A, B), quality="fast")
    np.testing.assert_array_equal(shifted[burnt], np.float32(0.7 + 0.1))
    rest = ~burnt
    assert error(found[rest], mosaic[rest]) < 0.7 * error(noisy[rest], mosaic[rest])
    # Clipped noise is not taken for the noise of the whole image.
    measured = measure_mosaic(noisy.astype(np.float32), "RGGB", 0.7)[1][0]
    assert np.sqrt(measured @ [0.3, 1]) == pytest.approx(np.sqrt(A * 0.3 + B), rel=0.15)


def test_strength_mixes_and_nothing_is_done_without_noise(light: NDArray[np.float64]) -> None:
    noisy = exposed(mosaic_of(light), A, B).astype(np.float32)
    options = {"noise": (A, B), "quality": "fast"}
    whole = denoise_mosaic(noisy, **options)
    half = denoise_mosaic(noisy, strength=0.5, **options)
    np.testing.assert_allclose(half, (whole + noisy) / 2, atol=1e-6)
    np.testing.assert_array_equal(denoise_mosaic(noisy, strength=0, **options), noisy)
    np.testing.assert_array_equal(denoise_mosaic(noisy, noise=(0, 0)), noisy)
    even = np.full((64, 64), 7, np.uint16)
    np.testing.assert_array_equal(denoise_mosaic(even), even)


def test_any_number_of_workers_and_any_window_give_the_same(light: NDArray[np.float64]) -> None:
    noisy = exposed(mosaic_of(light), A, B).astype(np.float32)
    first, second = (denoise_mosaic(noisy, quality="fast", n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(first, second)
    # A window (`wanted`) does not apply to mosaics: all of the mosaic is denoised.
    whole, window = (
        clean_mosaic(noisy, "RGGB", np.inf, None, Options(quality="fast", wanted=wanted))[0]
        for wanted in (None, ((0, 8), (0, 8)))
    )
    np.testing.assert_array_equal(window, whole)


@pytest.mark.parametrize("shape", [(2, 2), (3, 17), (16, 5), (33, 31)])
def test_small_mosaics_are_denoised_with_given_noise(shape: tuple[int, int]) -> None:
    noisy = exposed(np.full(shape, 50.0), 1.0, 0.0)
    found = denoise_mosaic(noisy, noise=(1, 0), quality="fast")
    assert found.shape == shape and np.isfinite(found).all()
    assert np.std(found) <= np.std(noisy)


def test_without_measurable_noise_nothing_is_done(light: NDArray[np.float64]) -> None:
    small = exposed(mosaic_of(light), A, B).astype(np.float32)[:12, :12]
    burnt = np.full((96, 96), 1.0, np.float32)
    burnt[::7, ::7] = 0.9
    for mosaic, white in ((small, None), (burnt, 1.0)):
        with pytest.warns(UserWarning, match="No noise could be measured"):
            np.testing.assert_array_equal(denoise_mosaic(mosaic, white=white), mosaic)


def test_impossible_arguments_are_rejected_in_one_line(light: NDArray[np.float64]) -> None:
    mosaic = mosaic_of(light)
    holed = mosaic.copy()
    holed[3, 5] = np.nan
    for wrong, message in (
        (light, "shape"),
        (mosaic[:1], "shape"),
        (mosaic.astype(complex), "complex"),
        (holed, "row 3, column 5"),
    ):
        with pytest.raises(InputError, match=message):
            denoise_mosaic(wrong)
    for options, message in (
        ({"pattern": "RGB"}, "RGGB, BGGR"),
        # Each of the four 3 x 3 cells has 5 G, 2 R and 2 B, as in X-Trans. But only two positions
        # are G in all four cells, and these two positions are not diagonal neighbours.
        ({"pattern": "GGGGBGGGBGRGBRRBGRBRGGBGGGBGBGGRGGRR"}, "the 36 letters of X-Trans"),
        ({"white": 0.1, "black": 0.2}, "not above black"),
        ({"black": float("nan")}, "black is nan"),
        ({"noise": (1, 2, 3)}, "noise is"),
        ({"noise": (-1, 0)}, "noise is"),
        ({"noise": "auto"}, "noise is"),
        ({"quality": "best"}, "quality"),
    ):
        with pytest.raises(ConfigError, match=message):
            denoise_mosaic(mosaic, **options)  # type: ignore[arg-type]
