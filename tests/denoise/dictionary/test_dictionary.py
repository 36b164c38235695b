import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.denoise.dictionary.choosing import choose
from kpca_apps.denoise.dictionary.level import ResidualLevel
from kpca_apps.denoise.dictionary.pixels import over_patches
from kpca_apps.errors import ConfigError, InputError, ModelFileError
from tests.system.model_parts import read_parts, write_parts

SIGMA = 0.25


@pytest.fixture(scope="module")
def digits():
    """Clean examples, clean test images and noisy ones, 8 x 8 pixels in [0, 1]."""
    images = load_digits().images / 16.0
    order = np.random.default_rng(0).permutation(len(images))
    examples, clean = images[order[:500]], images[order[500:600]]
    return examples, clean, clean + np.random.default_rng(1).normal(0.0, SIGMA, clean.shape)


@pytest.fixture(scope="module")
def model(digits):
    return DictionaryDenoiser(sigma=SIGMA).fit(digits[0])


@pytest.fixture(scope="module")
def waves():
    """Grey images of oblique waves."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:40, :48]
    angles = rng.uniform(0.0, np.pi, 4)
    return [0.5 + 0.4 * np.sin(0.7 * (np.cos(a) * x + np.sin(a) * y)) for a in angles]


def squared_error(a, b):
    return float(((a - b) ** 2).reshape(len(a), -1).sum(axis=1).mean())


def best_linear(examples, clean, noisy):
    rows = noisy.reshape(len(noisy), -1)
    results = []
    for q in range(1, 64):
        pca = PCA(q).fit(examples.reshape(len(examples), -1))
        back = pca.inverse_transform(pca.transform(rows)).reshape(clean.shape)
        results.append(squared_error(back, clean))
    return min(results)


@pytest.mark.release
def test_digits_are_denoised_better_than_by_the_best_linear_pca(digits, model):
    _, clean, noisy = digits
    assert (squared_error(model.denoise_stack(noisy, SIGMA), clean) / best_linear(*digits)) < 0.6


@pytest.mark.release
def test_a_model_ready_for_several_levels_loses_little(digits):
    examples, clean, noisy = digits
    model = DictionaryDenoiser().fit(examples[:120])
    one_level = DictionaryDenoiser(sigma=SIGMA).fit(examples[:120])
    levels = [choice.level for choice in model.choices_]
    assert levels == sorted(levels) and len(levels) == len(model.subspaces_) == 4
    own = squared_error(model.denoise_stack(noisy, SIGMA), clean)
    assert own < 1.1 * squared_error(one_level.denoise_stack(noisy, SIGMA), clean)


def test_the_choice_from_noisy_examples_is_near_that_from_clean_ones(digits):
    rows = digits[0].reshape(500, -1)
    level = SIGMA * np.hypot(1.0, 0.5)
    noisy = rows + np.random.default_rng(2).normal(0.0, SIGMA, rows.shape)
    options = {"examples_sigma": SIGMA, "bandwidth": 4.0}
    (blind,) = choose(noisy, np.random.default_rng(0), **options)
    assert blind.level == pytest.approx(level)
    # The error is below the noise, although the denoiser never saw the clean rows.
    assert 0.0 < blind.error < level**2


@pytest.mark.parametrize("noise", ["gaussian", "impulse"])
def test_images_give_the_same_result_alone_and_together(digits, model, noise):
    noisy = digits[2][:7]
    together = model.denoise_stack(noisy, SIGMA, noise=noise)
    alone = [model.denoise(image, sigma=SIGMA, noise=noise) for image in noisy]
    assert_array_equal(together, alone)


@pytest.mark.release
def test_impulses_are_detected_by_the_examples(digits, model):
    _, clean, _ = digits
    rng = np.random.default_rng(3)
    hit = rng.random(clean.shape) < 0.25
    noisy = np.where(hit, rng.choice([0.0, 1.0], clean.shape), clean)
    plain = squared_error(model.denoise_stack(noisy, SIGMA), clean)
    robust = squared_error(model.denoise_stack(noisy, SIGMA, noise="impulse"), clean)
    assert robust < 0.7 * plain and robust < 0.5 * best_linear(digits[0], clean, noisy)


def test_the_noise_level_is_measured_on_one_small_image(digits, model):
    _, _, noisy = digits
    found = [model.denoise_with_info(image)[1] for image in noisy[:40]]
    assert all(info.estimated for info in found)
    assert np.mean([info.sigma for info in found]) == pytest.approx(SIGMA, rel=0.1)
    assert np.std([info.sigma for info in found]) < 0.3 * SIGMA


@pytest.mark.parametrize("d", [20, 200])
def test_residual_level_on_rows_of_known_noise(d):
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, d))
    rows = rng.normal(size=(120, 3)) @ basis
    level = ResidualLevel.fit(rows, rng)
    directions = level.directions
    assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-10)
    assert level.of_rows(rows) == pytest.approx(1e-3)
    new = rng.normal(size=(500, 3)) @ basis + rng.normal(0.0, 0.3, (500, d))
    assert level.of_rows(new) == pytest.approx(0.3, rel=0.05)
    noisy = ResidualLevel.fit(rows + rng.normal(0.0, 0.3, rows.shape), rng, 0.3)
    assert noisy.of_rows(new) == pytest.approx(0.3, rel=0.1)


def test_units_and_types_follow_the_image(digits, model):
    image = digits[2][0]
    result = model.denoise(image, sigma=SIGMA)
    assert result.dtype == np.float64 and result.shape == image.shape
    assert model.denoise(image.astype(np.float32), sigma=SIGMA).dtype == np.float32
    stored = np.clip(np.round(image * 255), 0, 255).astype(np.uint8)
    from_bytes, info = model.denoise_with_info(stored, sigma=SIGMA * 255)
    assert from_bytes.dtype == np.float32 and from_bytes.max() <= 255 and from_bytes.min() >= 0
    assert info.sigma == pytest.approx(SIGMA * 255) and not info.estimated
    expected = np.clip(model.denoise(stored / 255.0, sigma=SIGMA) * 255, 0, 255)
    assert_allclose(from_bytes, expected, atol=1e-3)
    ranged = model.denoise(image * 7.0, sigma=SIGMA * 7.0, data_range=7.0)
    assert_allclose(ranged, result * 7.0, atol=1e-9)


def test_without_noise_nothing_changes(digits, model):
    image = digits[2][0]
    before = image.copy()
    assert_array_equal(model.denoise(image, sigma=0.0), image)
    model.denoise(image, sigma=SIGMA)
    assert_array_equal(image, before)


@pytest.mark.release
def test_patches_of_larger_images_are_averaged(waves):
    model = DictionaryDenoiser(patch_size=6, sigma=0.2, max_examples=400).fit(waves[:3])
    assert model.shape_ == (6, 6, 1)
    clean = waves[3]
    noisy = clean + np.random.default_rng(1).normal(0.0, 0.2, clean.shape)
    result, info = model.denoise_with_info(noisy, sigma=0.2)
    assert np.mean((result - clean) ** 2) < 0.35 * np.mean((noisy - clean) ** 2)
    assert info.converged > 0.95
    assert_array_equal(result, model.denoise(noisy, sigma=0.2))
    measured = model.denoise_with_info(noisy)[1]
    assert measured.estimated and measured.sigma == pytest.approx(0.2, rel=0.25)


def test_impulses_in_patches(waves):
    model = DictionaryDenoiser(20, patch_size=6, sigma=0.2, max_examples=200).fit(waves[:3])
    clean, rng = waves[3], np.random.default_rng(1)
    hit = rng.random(clean.shape) < 0.15
    noisy = np.where(hit, rng.choice([0.0, 1.0], clean.shape), clean)
    plain, robust = (model.denoise(noisy, sigma=0.2, noise=n) for n in ("gaussian", "impulse"))
    assert np.mean((robust - clean) ** 2) < 0.6 * np.mean((plain - clean) ** 2)


@pytest.mark.release
def test_memory_grows_by_a_few_images_only(waves):
    model = DictionaryDenoiser(4, bandwidth=20.0, patch_size=8, max_examples=20).fit(waves[:3])
    peaks = []
    for height in (120, 420):
        image = np.zeros((height, 200))
        tracemalloc.start()
        model.denoise(image, sigma=0.1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # All patches of an image at once would take 16 times the image.
    assert peaks[1] - peaks[0] < 8 * 300 * 200 * 8


def test_extracted_and_averaged_patches_give_the_image():
    image = np.random.default_rng(0).normal(size=(23, 140, 2))
    seen = []

    def unchanged(patches):
        seen.append(len(patches))
        assert_allclose(patches.reshape(len(patches), -1, 2).mean(axis=1), 0.0, atol=1e-12)
        return patches

    assert_allclose(over_patches(unchanged, image, 4, 3), image, atol=1e-12)
    seen.clear()
    over_patches(unchanged, image, 4, 1)
    assert sum(seen) == 20 * 137


@pytest.mark.release
def test_workers_change_no_bit(waves):
    options = {"patch_size": 6, "n_components": 20, "max_examples": 200, "stride": 1}
    model = DictionaryDenoiser(**options).fit(waves[:3])
    two = DictionaryDenoiser(**options, n_jobs=2).fit(waves[:3])
    noisy = waves[3] + np.random.default_rng(1).normal(0.0, 0.2, waves[3].shape)
    assert_array_equal(model.denoise(noisy, sigma=0.2), two.denoise(noisy, sigma=0.2))


@pytest.mark.parametrize("patch_size", [None, 6])
def test_a_file_restores_the_same_model(tmp_path, waves, digits, patch_size):
    images = digits[0][:100] if patch_size is None else waves
    image = digits[2][0] if patch_size is None else waves[0]
    model = DictionaryDenoiser(patch_size=patch_size, max_examples=60).fit(images)
    first, second = tmp_path / "a.kpca", tmp_path / "b.kpca"
    model.save(first)
    loaded = DictionaryDenoiser.load(first)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert_array_equal(loaded.denoise(image), model.denoise(image))


def test_other_and_damaged_models_are_rejected(tmp_path, model):
    file = tmp_path / "m.kpca"
    model.save(file)
    meta, arrays = read_parts(file)
    write_parts(file, {**meta, "kind": "novelty"}, arrays)
    with pytest.raises(ModelFileError, match=r"m\.kpca: not a denoising model; fit one with"):
        DictionaryDenoiser.load(file)
    fitted = meta["model"]
    given = fitted["parameters"]
    for spoilt in (
        {**fitted, "shape": [8, 9, 1]},
        {**fitted, "shape": [-8, -8, 1]},
        {**fitted, "choices": []},
        {**fitted, "parameters": {**given, "patch_size": 3}},
        {**fitted, "parameters": {**given, "stride": -1}},
        {**fitted, "parameters": {**given, "stride": "wide"}},
        {**fitted, "shape": [np.inf, 8, 1]},
        {**fitted, "choices": [{**fitted["choices"][0], "error": np.nan}]},
        {key: value for key, value in fitted.items() if key != "level"},
    ):
        write_parts(file, {**meta, "model": spoilt}, arrays)
        with pytest.raises(ModelFileError, match=r"m\.kpca"):
            DictionaryDenoiser.load(file)
    for name, array, message in (
        ("level.mean", arrays["level.mean"][1:], "ResidualLevel: directions has shape"),
        ("level.directions", np.eye(64), "64 directions"),
        ("subspaces.0.variances", -arrays["subspaces.0.variances"], "do not fit together"),
        ("subspaces.0.points", 1e140 * arrays["subspaces.0.points"], "do not fit together"),
    ):
        write_parts(file, meta, {**arrays, name: array})
        with pytest.raises(ModelFileError, match=message):
            DictionaryDenoiser.load(file)


def test_examples_are_stored_once(tmp_path, model):
    model.save(tmp_path / "m.kpca")
    points = [name for name in read_parts(tmp_path / "m.kpca")[1] if name.endswith("points")]
    assert points == ["subspaces.0.points"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components is 0"),
        ({"n_components": 9}, "n_components is 9, but 9 examples have 8 components at most"),
        ({"patch_size": 1}, "patch_size is 1"),
        ({"patch_size": 4, "stride": 5}, "wider than patches of 4"),
        ({"bandwidth": -1.0}, r"bandwidth is -1;"),
        ({"sigma": np.nan}, "sigma is nan"),
        ({"examples_sigma": -1.0}, "examples_sigma is"),
        ({"max_examples": 2}, "max_examples is 2"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        DictionaryDenoiser(**options).fit(np.zeros((9, 8, 8)))


def test_examples_that_cannot_be_used_are_named():
    good = list(np.random.default_rng(0).random((6, 8, 8)))
    names = [f"{i}.png" for i in range(7)]
    spoilt = good[0].copy()
    spoilt[2, 3] = np.nan
    for images, options, message in (
        ([], {}, "no images to learn from"),
        (good[:3], {}, "too few examples to learn from (3)"),
        ([*good, np.zeros((8, 9))], {}, "6.png: is 8 x 9 pixels, but 0.png is 8 x 8 pixels"),
        ([*good, spoilt], {}, "6.png: is not finite at row 2, column 3"),
        ([*good, np.zeros(8)], {}, "6.png: has shape (8,)"),
        ([*good, np.zeros((8, 8), complex)], {}, "6.png: has dtype complex128"),
        ([*good, np.zeros((4, 8))], {"patch_size": 5}, "6.png: is 4 x 8 pixels, smaller than"),
        ([*good, np.zeros((8, 8, 3))], {"patch_size": 5}, "6.png: has 3 channels"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            DictionaryDenoiser(**options).fit(images, names=names[: len(images)])


def test_images_that_do_not_fit_the_model_are_refused(model):
    with pytest.raises(InputError, match=r"x\.png: is 8 x 9 pixels, but the model learned whole"):
        model.denoise(np.zeros((8, 9)), name="x.png")
    with pytest.raises(InputError, match=r"x\.tif: its noise measures .* give the data range"):
        model.denoise(255.0 * np.random.default_rng(0).random((8, 8)), name="x.tif")
    with pytest.raises(ConfigError, match="sigma is -1"):
        model.denoise(np.zeros((8, 8)), sigma=-1.0)
    with pytest.raises(ConfigError, match=r"sigma is 0; give a finite number > 0"):
        model.denoise_stack(np.zeros((2, 8, 8)), 0.0)
    with pytest.raises(ConfigError, match="noise is 'rain'; give 'gaussian' or 'impulse'"):
        model.denoise(np.zeros((8, 8)), sigma=0.1, noise="rain")
    with pytest.raises(ConfigError, match="data_range is 0"):
        model.denoise(np.zeros((8, 8)), data_range=0.0)


def test_images_without_any_variation_pass_through():
    model = DictionaryDenoiser(sigma=0.1).fit(np.full((8, 4, 4), 0.5))
    assert_allclose(model.denoise(np.full((4, 4), 0.5), sigma=0.1), 0.5, atol=1e-6)
