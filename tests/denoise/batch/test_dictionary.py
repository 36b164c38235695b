import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

from kpca_apps.denoise.batch.dictionary import choice_sentence, view_dictionary
from kpca_apps.denoise.dictionary import DictionaryDenoiser
from kpca_apps.denoise.result import ImageOutcome, Preview

DIGITS = load_digits().images / 16.0


@pytest.fixture(scope="module")
def model() -> DictionaryDenoiser:
    return DictionaryDenoiser().fit(DIGITS[:60])


def pixels(preview: Preview) -> np.ndarray:
    with Image.open(io.BytesIO(preview.data)) as picture:
        assert (picture.width, picture.height) == (preview.width, preview.height)
        return np.asarray(picture).astype(float)


def test_components_are_numbered_with_their_share_and_differ_by_side(
    model: DictionaryDenoiser,
) -> None:
    view = view_dictionary(model, "d.kpca")
    assert [component.number for component in view.components] == list(range(1, 13))
    bandwidth = model.choices_[len(model.choices_) // 2].bandwidth
    other = KernelPCA(kernel="rbf", gamma=1 / bandwidth).fit(DIGITS[:60].reshape(60, -1))
    shares = other.eigenvalues_ / other.eigenvalues_.sum()
    assert [component.share for component in view.components] == pytest.approx(shares[:12].tolist())
    for component in view.components:
        assert np.abs(pixels(component.below) - pixels(component.above)).max() > 50


def test_the_described_level_is_the_measured_one(model: DictionaryDenoiser) -> None:
    for choice, subspace in zip(model.choices_, model.subspaces_, strict=True):
        met = ImageOutcome("a", "ok", sigma=255 * choice.level, data_range=255.0)
        view = view_dictionary(model, "d.kpca", [met, replace(met, sigma=None, status="failed")])
        assert (view.bandwidth, view.n_components) == (choice.bandwidth, subspace.n_components)
    assert (view.name, view.n_examples, view.shape) == ("d.kpca", 60, (8, 8, 1))


def test_patches_are_drawn_around_middle_grey() -> None:
    photo = np.random.default_rng(0).random((30, 30, 3))
    model = DictionaryDenoiser(4, patch_size=5, sigma=0.1, max_examples=40).fit([photo])
    view = view_dictionary(model, "p.kpca")
    assert (view.patch_size, view.shape, len(view.components)) == (5, (5, 5, 3), 4)
    drawn = [pixels(side) for c in view.components for side in (c.below, c.above)]
    assert np.mean(drawn) == pytest.approx(127.5, abs=1)
    assert max(np.abs(picture - 127.5).max() for picture in drawn) == 127.5


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({}, "and the number of components are what denoised held-out examples best at each of 4"),
        ({"sigma": 0.2}, "examples best at the noise level given."),
        ({"examples_sigma": 0.2}, "examples best at a noise level near that of the examples."),
        ({"n_components": 5}, "The bandwidth is what denoised .*; the other is as given."),
        ({"bandwidth": 9.0}, "The number of components is what .*; the other is as given."),
        ({"bandwidth": 9.0, "n_components": 5}, "components are as given."),
    ],
)
def test_the_rule_is_reported_after_loading_too(
    options: dict[str, float], pattern: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("model") / "m.kpca"
    n_components = options.pop("n_components", None)
    fitted = DictionaryDenoiser(n_components, **options).fit(DIGITS[:20])  # type: ignore[arg-type]
    fitted.save(path)
    sentence = choice_sentence(DictionaryDenoiser.load(path))
    assert sentence == choice_sentence(fitted)
    assert re.search(pattern, sentence)
