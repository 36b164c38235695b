from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kpca_apps.denoise.modes import LocalMode
from kpca_apps.denoise.settings import Settings
from kpca_apps.denoise.trial import try_strengths
from kpca_apps.files.images import ImageFile, read_image
from tests.denoise.toy import save

CROP = 160
FAST = LocalMode(Settings(quality="fast", noise="auto"))


def with_detail(folder: Path, shape: tuple[int, int], top: int, left: int) -> ImageFile:
    """An even image with noise and one chequered corner."""
    rng = np.random.default_rng(0)
    pixels = np.full(shape, 100.0)
    rows, columns = np.mgrid[: shape[0] - top, : shape[1] - left]
    pixels[top:, left:] += 80 * ((rows // 4 + columns // 4) % 2)
    noisy = np.clip(pixels + rng.normal(0, 15, shape), 0, 255).astype(np.uint8)
    return read_image(save(folder, "a.png", noisy), label="a.png")


def test_the_crop_is_where_the_detail_is_and_looks_as_in_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.trial.CROP", CROP)
    image = with_detail(tmp_path, (64, 300), 0, 140)
    trial = try_strengths(image, FAST)
    assert (trial.left, trial.top, trial.width, trial.height) == (300 - CROP, 0, CROP, 64)
    whole, info = FAST(image.page(0), channel_axis=None)
    assert trial.sigma == pytest.approx(info.sigma)
    crop = np.s_[:, 300 - CROP :]
    taken = (image.page(0)[crop] - np.clip(np.rint(whole[crop]), 0, 255)).std()
    assert trial.trials[1].residual_sd == pytest.approx(taken, rel=0.02)


def test_the_weaker_one_is_a_mixture_and_the_stronger_one_smoother(tmp_path: Path) -> None:
    trial = try_strengths(with_detail(tmp_path, (64, 72), 30, 30), FAST)
    weaker, middle, stronger = trial.trials
    assert weaker.residual_sd == pytest.approx(0.6 * middle.residual_sd, rel=0.02)
    assert stronger.residual_sd > middle.residual_sd
    assert [one.option for one in trial.trials] == ["--strength 0.6", "--strength 1", "--luma 1.3"]
    assert (trial.before.width, middle.after.width, middle.residual.height) == (72, 72, 64)
    assert trial.estimated


def test_a_given_level_and_strength_are_kept(tmp_path: Path) -> None:
    mode = LocalMode(Settings(quality="fast", strength=0.5, luma=2.0), sigma=7.0)
    trial = try_strengths(with_detail(tmp_path, (40, 40), 20, 20), mode)
    assert (trial.sigma, trial.estimated, trial.noise) == (7.0, False, "gaussian")
    options = ["--strength 0.3", "--strength 0.5", "--luma 2.6"]
    assert [one.option for one in trial.trials] == options


def test_a_turned_photograph_is_shown_upright(tmp_path: Path) -> None:
    image = with_detail(tmp_path, (40, 60), 20, 20)
    exif = (
        b"MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"
        + bytes(4)
    )
    turned = read_image(save(tmp_path, "b.png", image.page(0), exif=exif), label="b.png")
    assert turned.metadata.orientation == 6
    trial = try_strengths(turned, FAST)
    assert (trial.width, trial.height) == (40, 60)
