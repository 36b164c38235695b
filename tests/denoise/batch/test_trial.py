from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.previews import make_previews
from kpca_apps.denoise.batch.trial import strengths_of, try_strengths
from kpca_apps.denoise.noise.choose import MODELS
from kpca_apps.denoise.options import Options
from kpca_apps.images.files import read_image
from kpca_apps.images.types import ImageFile
from tests.denoise.toy import save
from tests.quick import quick

CROP = 64
FAST = GroupDenoiser(Options(quality="fast", noise="auto"))


def with_detail(folder: Path, shape: tuple[int, int], top: int, left: int) -> ImageFile:
    """A constant image with noise and one chequered corner."""
    rng = np.random.default_rng(0)
    pixels = np.full(shape, 100.0)
    rows, columns = np.mgrid[: shape[0] - top, : shape[1] - left]
    pixels[top:, left:] += 80 * ((rows // 4 + columns // 4) % 2)
    noisy = np.clip(pixels + rng.normal(0, 15, shape), 0, 255).astype(np.uint8)
    return read_image(save(folder, "a.png", noisy), label="a.png")


@pytest.mark.parametrize(
    "noise", quick(["gaussian", "poisson", "speckle", "impulse", "camera"], "gaussian")
)
def test_the_crop_is_where_the_detail_is_and_the_same_as_in_the_whole(
    noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.batch.trial.CROP", CROP)
    mode = GroupDenoiser(Options(quality="fast", noise=noise))
    image = with_detail(tmp_path, (32, 330), 0, 330 - CROP)
    trial = try_strengths(image, mode)
    assert (trial.left, trial.top, trial.width, trial.height) == (330 - CROP, 0, CROP, 32)
    pixels = image.page(0)
    crop = np.s_[:, 330 - CROP :]
    tried = list(zip(trial.trials, strengths_of(mode.options, colour=False), strict=True))
    # The first trial is weaker: a mixture of the input and the full result. It is checked for one
    # kind of noise only, as mixing does not depend on the kind.
    for result, options in tried if noise == "gaussian" else tried[1:]:
        whole, info = GroupDenoiser(options[2])(pixels, channel_axis=None)
        after = np.clip(np.rint(whole[crop]), 0, 255).astype(np.uint8)
        assert result.residual_sd == np.std(pixels[crop].astype(float) - after)
        assert result.after == make_previews(pixels[crop], after).after
        if result.strength == 1:
            assert trial.sigma == info.sigma


def test_the_crop_of_a_turned_colour_image_is_as_in_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.batch.trial.CROP", 48)
    rng = np.random.default_rng(3)
    pixels = rng.normal(120, (5, 12, 20), (48, 300, 3)).clip(0, 255).astype(np.uint8)
    exif = Image.Exif()
    exif[274] = 6
    image = read_image(save(tmp_path, "a.png", pixels, exif=exif), label="a.png")
    mode = GroupDenoiser(Options(quality="fast", noise="gaussian"))
    trial = try_strengths(image, mode)
    assert (trial.width, trial.height) == (48, 48)
    whole = np.rint(mode(pixels, channel_axis=-1)[0]).clip(0, 255).astype(np.uint8)
    cut = np.s_[trial.top : trial.top + 48, trial.left : trial.left + 48]
    before, after = (np.rot90(values, -1)[cut] for values in (pixels, whole))
    assert trial.trials[1].after == make_previews(before, after).after
    assert trial.before == make_previews(before, after).before


def test_the_weaker_one_is_a_mixture_and_the_stronger_one_smoother(tmp_path: Path) -> None:
    trial = try_strengths(with_detail(tmp_path, (64, 72), 30, 30), FAST)
    weaker, middle, stronger = trial.trials
    assert weaker.residual_sd == pytest.approx(0.6 * middle.residual_sd, rel=0.02)
    assert stronger.residual_sd > middle.residual_sd
    assert [t.option for t in trial.trials] == ["--strength 0.6", "--strength 1", "--luma 1.3"]
    assert (trial.before.width, middle.after.width, middle.residual.height) == (72, 72, 64)
    assert trial.estimated


@pytest.mark.parametrize("noise", ["gaussian", "camera"])
def test_the_image_is_denoised_once_for_strengths_that_are_mixtures(
    noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, factors = MODELS[noise].denoise, []

    def counted(planes: NDArray[np.float32], sigma: float | None, options: Options) -> object:
        factors.append(options.luma)
        return model(planes, sigma, options)

    monkeypatch.setattr(MODELS[noise], "denoise", counted)
    mode = GroupDenoiser(Options(quality="fast", noise=noise, strength=0.5))
    assert len(try_strengths(with_detail(tmp_path, (48, 72), 20, 30), mode).trials) == 3
    assert factors == [1.0, 1.3]


def test_a_given_level_and_strength_are_kept(tmp_path: Path) -> None:
    mode = GroupDenoiser(Options(quality="fast", strength=0.5, luma=2.0), sigma=7.0)
    trial = try_strengths(with_detail(tmp_path, (40, 40), 20, 20), mode)
    assert (trial.sigma, trial.estimated, trial.noise) == (7.0, False, "gaussian")
    assert [t.option for t in trial.trials] == ["--strength 0.3", "--strength 0.5", "--luma 2.6"]
