import inspect
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from skimage import data
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import calibrate_denoiser, denoise_invariant, denoise_nl_means
from skimage.util import random_noise
from threadpoolctl import threadpool_limits

from kpca_apps.cli.denoise import options as denoise_options
from kpca_apps.denoise.denoiser import Given, Noise, clean_image, denoise_kpca, denoise_with_info
from kpca_apps.denoise.options import NOISES, Options, Window
from kpca_apps.errors import ConfigError, InputError
from tests.quick import quick

GREY = data.camera()[100:164, 200:264]
COLOUR = data.astronaut()[20:84, 190:254]
RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal((64, 64, 3))


def db(image: np.ndarray, clean: np.ndarray) -> float:
    return float(
        peak_signal_noise_ratio(clean.astype(float), np.asarray(image, float), data_range=255)
    )


def noisy_grey(sigma: float = 20) -> np.ndarray:
    return GREY + sigma * NOISE[..., 0]


def noisy_colour(sigma: float = 20) -> np.ndarray:
    return COLOUR + sigma * NOISE


def test_the_number_of_cores_changes_no_bit() -> None:
    """BLAS must be limited to one thread: with more, it would add in another order."""
    rng = np.random.default_rng(0)
    light = data.camera()[:160, 150:310] * 0.5
    counts = rng.poisson(light) * 2.0 + rng.normal(100, 3, light.shape)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limit):
            found.append(denoise_with_info(counts, quality="draft"))
    (one, of_one), (two, of_two) = found
    assert of_one == of_two and of_one.laws
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.uint16, np.int16, np.float16, np.float32, np.float64]
)
def test_result_is_of_floats_in_the_units_of_any_dtype(dtype: type) -> None:
    image = np.clip(noisy_grey(), 0, 255).astype(dtype)
    before = image.copy()
    out = denoise_kpca(image, sigma=20, data_range=255, quality="fast")
    assert out.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert out.shape == image.shape
    np.testing.assert_array_equal(image, before)
    assert db(out, GREY) > db(image, GREY) + 3


RANGES = {  # GREY in other units: the size of one grey level, and the value of black
    "floats around 0 to 1": (np.float32, 1 / 255, 0.0),
    "floats above 1": (np.float64, 40.0, 0.0),
    "floats less a background": (np.float64, 1.0, -20.0),
    "int16 less a background": (np.int16, 100.0, -2000.0),
    "uint8": (np.uint8, 1.0, 0.0),
    "uint16": (np.uint16, 257.0, 0.0),
}


@pytest.mark.parametrize(
    "noise", quick(["gaussian", "poisson", "speckle", "impulse", "camera"], "gaussian", "poisson")
)
@pytest.mark.parametrize("values", RANGES)
def test_floats_are_never_clipped_and_integers_only_at_the_range_of_their_type(
    noise: str, values: str
) -> None:
    """Half of the image is so dark that noise goes below the least value of the type.

    Where noise is clipped, the denoised mean is the clean one (camera noise: by at least 60 %).
    """
    dtype, unit, black = RANGES[values]
    clean = np.where(np.arange(64) < 32, 0.0, GREY / 2.0 + 60) * unit + black
    noisy = clean + 6 * unit * NOISE[..., 0]
    if integer := np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        noisy = np.clip(np.rint(noisy), limits.min, limits.max)
    out = denoise_kpca(noisy.astype(dtype), noise=noise, quality="fast", data_range=255 * unit)
    dark = np.s_[4:-4, 4:26]
    cut_off = noise in ("gaussian", "camera") and integer and limits.min == black
    mean = clean[dark].mean() if cut_off else noisy[dark].mean()
    left = 0.4 * noisy[dark].mean() if noise == "camera" and cut_off else 0.5 * unit
    assert abs(out[dark].mean() - mean) < left
    assert (out[dark] < 0).mean() > 0.2 or (integer and limits.min == 0)
    assert not integer or (out.min() >= limits.min and out.max() <= limits.max)


def any_values(dtype: type) -> np.ndarray:
    """Values over the whole range of a dtype; 32-bit integers do not fit single precision.

    The image is smaller than a patch, so that no time is spent on measuring noise.
    """
    shape = (7, 9, 4)
    if dtype is bool:
        return RNG.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return (RNG.normal(size=shape) * 1e3).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -(2**53)), min(limits.max, 2**53)
    return RNG.integers(low, high, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize(
    "dtype",
    [
        *(bool, np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64),
        *(np.float16, np.float32, np.float64, np.longdouble),
    ],
)
def test_sigma_zero_and_strength_zero_return_the_image_to_the_last_bit(dtype: type) -> None:
    image = any_values(dtype)
    for values, axis in ((image[..., 0], None), (image[..., :3], -1), (image, -1)):
        for options in ({"sigma": 0}, {"sigma": 1, "strength": 0}):
            out = denoise_kpca(values, channel_axis=axis, **options)
            assert out.dtype in (np.float32, np.float64)
            np.testing.assert_array_equal(out, values.astype(out.dtype))
            assert not np.shares_memory(out, values)


def test_a_constant_channel_is_unchanged_to_the_last_bit() -> None:
    image = noisy_colour()
    image[..., 1] = 1 / 3
    out = denoise_kpca(image, sigma=20, channel_axis=-1, data_range=255, quality="fast")
    np.testing.assert_array_equal(out[..., 1], image[..., 1])


@pytest.mark.release
def test_a_sigma_below_one_for_integers_gives_a_warning() -> None:
    image = np.clip(noisy_grey(), 0, 255).astype(np.uint8)
    with pytest.warns(UserWarning, match=r"less than one step of uint8.*give 20\."):
        denoise_kpca(image, sigma=20 / 255, quality="fast")
    # A warning of any call below would raise an error.
    denoise_kpca(image / 255, sigma=20 / 255, quality="fast")
    denoise_kpca(image, sigma=0.1, noise="speckle", quality="fast")
    denoise_kpca(image, sigma=1, quality="fast")


def test_the_command_and_the_function_accept_the_same_noise() -> None:
    function = inspect.signature(denoise_kpca).parameters["noise"].default
    assert function == denoise_options.RunOptions.noise == Options().noise == "auto"


def test_strength_mixes_image_and_result() -> None:
    image = noisy_grey()
    full = denoise_kpca(image, sigma=20, data_range=255, quality="fast")
    half = denoise_kpca(image, sigma=20, data_range=255, quality="fast", strength=0.5)
    np.testing.assert_allclose(half, (image + full) / 2, atol=1e-3)


def test_channel_axis_may_be_anywhere() -> None:
    last = denoise_kpca(noisy_colour(), sigma=20, data_range=255, channel_axis=-1, quality="fast")
    first = denoise_kpca(
        np.moveaxis(noisy_colour(), -1, 0), sigma=20, data_range=255, channel_axis=0, quality="fast"
    )
    np.testing.assert_array_equal(np.moveaxis(first, 0, -1), last)


def test_alpha_is_returned_unchanged() -> None:
    alpha = RNG.integers(1, 256, (64, 64, 1))  # 0 would mean no data
    image = np.concatenate([np.clip(noisy_colour(), 0, 255), alpha], axis=-1).astype(np.uint8)
    out = denoise_kpca(image, sigma=20, channel_axis=-1, quality="fast")
    np.testing.assert_array_equal(out[..., 3], image[..., 3])
    plain = denoise_kpca(image[..., :3], sigma=20, channel_axis=-1, quality="fast")
    np.testing.assert_array_equal(out[..., :3], plain)


def test_luma_or_chroma_of_zero_changes_nothing() -> None:
    image = noisy_colour()
    options = {"sigma": 20, "data_range": 255, "channel_axis": -1, "quality": "fast"}
    no_chroma = denoise_kpca(image, chroma=0, **options)
    np.testing.assert_allclose(
        no_chroma[..., 0] - no_chroma[..., 2], image[..., 0] - image[..., 2], atol=1e-3
    )
    no_luma = denoise_kpca(image, luma=0, **options)
    np.testing.assert_allclose(no_luma.sum(axis=-1), image.sum(axis=-1), atol=1e-3)


def test_colour_is_denoised_a_decibel_better_than_by_non_local_means() -> None:
    image = noisy_colour()
    baseline = denoise_nl_means(
        image, sigma=20, h=12, patch_size=5, patch_distance=6, fast_mode=True, channel_axis=-1
    )
    ours = denoise_kpca(image, sigma=20, data_range=255, channel_axis=-1)
    assert db(ours, COLOUR) > db(baseline, COLOUR) + 1


@st.composite
def crops(draw: st.DrawFn) -> tuple[tuple[int, int], Window]:
    """Draw an image larger than the support of any pass, and a crop of it."""
    sides = [draw(st.integers(30, 40)), draw(st.integers(300, 480))]
    ends = [sorted(draw(st.tuples(st.integers(0, n - 1), st.integers(1, n)))) for n in sides]
    rows, columns = ((low, max(high, low + 1)) for low, high in ends)
    turned = draw(st.booleans())
    shape = (sides[1], sides[0]) if turned else (sides[0], sides[1])
    return shape, (columns, rows) if turned else (rows, columns)


# Draw few examples and shrink none, because each takes half a second or more.
@pytest.mark.release
@settings(max_examples=16, deadline=None, phases=[Phase.generate])
@given(
    crops(),
    st.sampled_from(["gaussian", "poisson", "speckle", "impulse", "camera"]),
    st.sampled_from(["draft", "fast", "balanced", "high"]),
    st.sampled_from(["photo", "photo", "text"]),
    st.booleans(),
    st.booleans(),
)
def test_a_crop_equals_the_crop_of_the_whole_to_the_last_bit(
    drawn: tuple[tuple[int, int], Window],
    noise: str,
    quality: str,
    content: str,
    colour: bool,
    given_sigma: bool,
) -> None:
    """Group search, low frequencies, levels and range must be those of the whole image."""
    (height, width), window = drawn
    texture = np.resize(COLOUR, (height, width, 3)).astype(float)
    texture += 20 * np.random.default_rng(height * width).standard_normal(texture.shape)
    image = texture if colour else texture[..., 1]
    options = Options(noise=noise, quality=quality, content=content)
    sigma = (0.2 if noise == "speckle" else 20.0) if given_sigma else None
    given, axis = Given(sigma, data_range=255.0), -1 if colour else None
    whole = clean_image(image, options, given, channel_axis=axis).at(1.0)
    piece = clean_image(image, replace(options, wanted=window), given, channel_axis=axis).at(1.0)
    (top, bottom), (left, right) = window
    inner = np.s_[top:bottom, left:right]
    np.testing.assert_array_equal(piece[inner], whole[inner])


@pytest.mark.release
def test_scikit_image_can_calibrate_the_denoiser() -> None:
    image = noisy_grey()[:32, :32] / 255
    calibrated = calibrate_denoiser(
        image,
        denoise_kpca,
        denoise_parameters={"sigma": [0.02, 20 / 255], "quality": ["fast"], "data_range": [1.0]},
    )
    chosen = {"sigma": 20 / 255, "quality": "fast", "data_range": 1.0}
    expected = denoise_invariant(image, denoise_kpca, denoiser_kwargs=chosen)
    np.testing.assert_array_equal(calibrated(image), expected)


@pytest.mark.release
def test_denoise_kpca_warns_of_impulses_and_of_no_noise() -> None:
    clean = data.camera()[200:296, 200:296]
    noisy = np.round(255 * random_noise(clean, "s&p", amount=0.1, rng=0)).astype(np.uint8)
    with pytest.warns(UserWarning) as caught:
        out = denoise_kpca(noisy, noise="auto")
    np.testing.assert_array_equal(out, noisy)
    messages = [str(warning.message) for warning in caught]
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert 'noise="impulse"' in messages[0] and "the image is returned as it was" in messages[1]
    with pytest.warns(UserWarning, match="the image is returned as it was") as caught:
        denoise_kpca(clean)
    assert len(caught) == 1
    # A warning of any call below would raise an error.
    info = denoise_with_info(noisy)[1]
    assert (info.impulses, info.established) == (True, False)
    denoise_kpca(noisy, noise="impulse", quality="fast")
    for nothing_asked in ({"sigma": 0}, {"strength": 0}):
        denoise_kpca(noisy, **nothing_asked)


@pytest.mark.filterwarnings(
    "ignore:No noise could be established", "ignore:Single pixels stand out"
)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 3), (5, 40)])
@pytest.mark.parametrize("noise", ["gaussian", "poisson", "speckle", "impulse", "camera", "auto"])
def test_tiny_images_give_finite_results(shape: tuple[int, int], noise: str) -> None:
    # A shared generator would make results depend on the order of the tests.
    image = np.random.default_rng(1).uniform(10, 200, shape)
    out = denoise_kpca(image, noise=noise, data_range=255)
    assert out.shape == shape
    assert np.isfinite(out).all()


@pytest.mark.parametrize("value", [0, 128, 255])
@pytest.mark.parametrize("noise", ["gaussian", "poisson", "speckle", "impulse", "camera", "auto"])
def test_constant_images_stay_constant(value: int, noise: str) -> None:
    image = np.full((40, 40, 3), value, np.uint8)
    np.testing.assert_allclose(denoise_kpca(image, noise=noise, channel_axis=-1), value, atol=0.5)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.ones((8, 8, 3)), {}, "channel_axis is None.*stack_axis for pages"),
        (np.ones((8, 8)), {"channel_axis": -1}, "has three dimensions"),
        (np.ones((2, 8, 8, 3)), {"channel_axis": -1}, "has three dimensions"),
        (np.ones((8, 8), complex), {}, "complex128"),
        (np.ones((0, 8)), {}, "no pixels"),
        (np.full((8, 8), 1e308) * np.eye(8), {}, "too wide"),
        (np.full((8, 8), 1e-310) * np.eye(8), {}, "too narrow"),
        (np.full((8, 8), np.nan), {}, "no pixel that is data"),
    ],
)
def test_images_that_cannot_be_denoised_are_rejected(
    image: np.ndarray, options: dict, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        denoise_kpca(image, **options)


def test_the_first_bad_pixel_is_named() -> None:
    image = np.ones((8, 8, 3))
    image[2, 5, 1] = np.inf
    with pytest.raises(InputError, match="row 2, column 5, channel 1"):
        denoise_kpca(image, channel_axis=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": -1}, "sigma is -1"),
        ({"sigma": np.nan}, "sigma is nan"),
        ({"sigma": 300}, "above the data range of 255"),
        ({"sigma": 5, "noise": "speckle"}, "relative to the intensity"),
        ({"data_range": 0}, "data_range is 0"),
        ({"channel_axis": 3}, "channel_axis is 3"),
        ({"channel_axis": 1.0}, "channel_axis is 1.0; give a whole number"),
        ({"channel_axis": True}, "channel_axis is True; give a whole number"),
        ({"data_range": "1"}, "data_range is '1'; give one number"),
        ({"sigma": True}, "sigma is True; give one number"),
        ({"noise": "pink"}, "noise is 'pink'"),
        ({"quality": "best"}, "quality is 'best'"),
        ({"method": "poly"}, "method is 'poly'"),
        ({"content": "film"}, "content is 'film'"),
        ({"method": "linear", "bandwidth": 4.0}, "bandwidth has no effect with method linear"),
        ({"bandwidth": 0.0}, "bandwidth is 0; give a finite number of 0.1 or more"),
        ({"luma": -1}, "luma is -1"),
        ({"chroma": np.inf}, "chroma is inf"),
        ({"strength": 1.5}, "strength is 1.5"),
        ({"sigma": "auto"}, "sigma is 'auto'"),
        ({"sigma": np.array([1.0, 2.0])}, "give one number"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": 1.5}, "n_jobs is 1.5"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    image = np.ones((8, 8, 3), np.uint8)
    with pytest.raises(ConfigError, match=message):
        denoise_kpca(image, **{"channel_axis": -1, **options})


@pytest.mark.release
def test_channels_that_are_not_colours_are_denoised_separately() -> None:
    rng = np.random.default_rng(0)
    bands = 100 + rng.normal(size=(5, 32, 40)) * np.array([5, 10, 15, 20, 25])[:, None, None]
    denoised, info = denoise_with_info(bands, data_range=255, channel_axis=0, quality="fast")
    for band, found, level in zip(bands, denoised, info.channel_sigma, strict=True):
        alone, of_band = denoise_with_info(band, data_range=255, quality="fast")
        np.testing.assert_array_equal(found, alone)
        assert level == of_band.sigma
    known = denoise_kpca(bands, sigma=[5, 10, 15, 20, 25], data_range=255, channel_axis=0)
    np.testing.assert_array_equal(known[2], denoise_kpca(bands[2], sigma=15, data_range=255))


def test_each_colour_may_have_its_own_level() -> None:
    colours = 100 + np.random.default_rng(0).normal(size=(40, 40, 3)) * [25, 3, 3]
    options = {"data_range": 255, "channel_axis": -1, "quality": "fast"}
    info = denoise_with_info(colours, sigma=(25, 3, 3), **options)[1]  # type: ignore[arg-type]
    assert info.channel_sigma == pytest.approx((25, 3, 3))
    with pytest.raises(ConfigError, match="2 levels"):
        denoise_kpca(colours, sigma=(25, 3), **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="one number for speckle"):
        denoise_kpca(colours, sigma=(25, 3, 3), noise="speckle", **options)  # type: ignore[arg-type]


def test_two_channels_accept_numpy_levels_and_axes() -> None:
    rng = np.random.default_rng(3)
    image = np.stack([GREY + s * rng.standard_normal(GREY.shape) for s in (5, 6)], axis=-1)
    found = denoise_kpca(
        image, sigma=np.array([5.0, 6.0]), channel_axis=np.int64(-1), data_range=255, quality="fast"
    )
    listed = denoise_kpca(image, sigma=[5.0, 6.0], channel_axis=-1, data_range=255, quality="fast")
    np.testing.assert_array_equal(found, listed)


def test_warnings_point_to_the_callers_line() -> None:
    with pytest.warns(UserWarning) as caught:
        denoise_kpca(np.zeros((16, 16), np.uint8), sigma=0.1, quality="fast")
    assert {warning.filename for warning in caught} == {__file__}


def test_type_checkers_know_all_kinds_of_noise() -> None:
    assert set(get_args(Noise)) == set(NOISES)


@pytest.mark.parametrize("noise", ["poisson", "speckle"])
def test_values_far_from_black_relative_to_their_spread_are_rejected(noise):
    image = (1e15 + np.arange(36.0).reshape(6, 6)) * 1e22
    with pytest.raises(InputError, match=f"noise that grows with brightness.*not '{noise}'"):
        denoise_kpca(image.astype(np.float32), noise=noise)


def test_a_tiny_poisson_level_leaves_the_image_unchanged():
    image = np.arange(36.0).reshape(6, 6) * 1e-140
    np.testing.assert_array_equal(denoise_kpca(image, sigma=1e-300, noise="poisson"), image)
