"""Masked and missing pixels of image files keep their exact bits."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.examine.measuring import measure_file
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.batch.trial import try_strengths
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from tests.denoise.toy import save

NOISY = np.clip(
    np.add.outer(np.arange(64), np.arange(80))
    + 10 * np.random.default_rng(0).normal(size=(64, 80)),
    1,
    254,
).astype(np.uint8)
DATA = np.hypot(*np.indices(NOISY.shape) - [[[32]], [[40]]]) < 28


def run(folder: Path, **known: Any) -> DenoisingResult:
    denoiser = GroupDenoiser(Options(quality="draft"), sigma=known.pop("sigma", 10.0), **known)
    return run_batch([folder / "in"], folder / "out", denoiser.settings, denoise=denoiser)


def test_holes_of_three_kinds_stay_as_they_are(tmp_path: Path) -> None:
    colours = np.dstack([NOISY, NOISY[::-1], NOISY, 255 * DATA]).astype(np.uint8)
    save(tmp_path / "in", "alpha.png", colours)
    save(tmp_path / "in", "masked.png", NOISY)
    tifffile.imwrite(tmp_path / "in" / "nan.tif", np.where(DATA, NOISY, np.nan).astype(np.float32))
    mask = save(tmp_path, "mask.png", DATA.astype(np.uint8))
    result = run(tmp_path, mask=mask, mask_sha256="its hash", data_range=255.0)
    assert [image.reason for image in result.images] == ["", "", ""]
    names = [image.output for image in result.images]
    found = {Path(name).stem: read_image(tmp_path / "out" / name).page(0) for name in names}
    assert np.array_equal(found["alpha"][~DATA], colours[~DATA])
    assert np.array_equal(found["masked"][~DATA], NOISY[~DATA])
    assert np.array_equal(np.isnan(found["nan"]), ~DATA)
    # A mask and NaN in the same pixels give the same result.
    assert np.abs(np.rint(found["nan"][DATA]) - found["masked"][DATA]).max() <= 1
    assert np.mean(found["masked"][DATA] != NOISY[DATA]) > 0.8
    assert all(np.isfinite(image.residual.sd) for image in result.images if image.residual)


def test_a_mask_may_have_one_bit_a_pixel(tmp_path: Path) -> None:
    save(tmp_path / "in", "a.png", NOISY)
    found = []
    for mask in (save(tmp_path, "bits.tif", DATA), save(tmp_path, "m.png", 9 * DATA.astype("u1"))):
        assert not run(tmp_path, mask=mask, mask_sha256=mask.name).images[0].reason
        found.append((tmp_path / "out" / "a.png").read_bytes())
        (tmp_path / "out" / "a.png").unlink()
    assert found[0] == found[1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_rejected_as_a_mask_without_waiting(tmp_path: Path) -> None:
    save(tmp_path / "in", "noisy.png", NOISY)
    os.mkfifo(tmp_path / "mask.png")
    (image,) = run(tmp_path, mask=tmp_path / "mask.png").images
    assert image.status == "failed" and "mask.png: this is no regular file" in image.reason


def test_pages_of_a_stack_may_have_holes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    film = np.stack([np.where(DATA, NOISY, np.nan)] * 3).astype(np.float32)
    film[1] = np.nan
    tifffile.imwrite(
        tmp_path / "in" / "film.tif", film, photometric="minisblack", metadata={"axes": "TYX"}
    )
    assert run(tmp_path, stack=True).done
    found = tifffile.imread(tmp_path / "out" / "film.tif")
    assert np.array_equal(np.isnan(found), np.isnan(film)) and np.nanstd(found[0] - film[0]) > 5


def test_a_region_of_a_file_is_all_that_changes(tmp_path: Path) -> None:
    save(tmp_path / "in", "a.png", NOISY)
    assert run(tmp_path, region=(10, 20, 30, 40), sigma=None).settings["region"] == [10, 20, 30, 40]
    with Image.open(tmp_path / "out" / "a.png") as image:
        changed = np.array(image) != NOISY
    assert changed[20:60, 10:40].mean() > 0.8
    assert np.count_nonzero(changed[20:60, 10:40]) == np.count_nonzero(changed)
    save(tmp_path / "in", "small.png", NOISY[:32])
    (failed,) = run(tmp_path, region=(10, 20, 30, 40), sigma=None).failed
    assert failed.reason == (
        "small.png: region 10,20,30,40 reaches beyond the image of 80 x 32 pixels; give one inside"
    )


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        (np.ones((8, 8), np.uint8), "its mask mask.tif: has 8 x 8 pixels and the image 80 x 64"),
        (np.ones((3, 64, 80), np.uint8), "its mask mask.tif: has 3 pages and the image 1"),
        (np.zeros((64, 80), np.uint8), "image has no pixel that is data"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(
    tmp_path: Path, pages: np.ndarray, message: str
) -> None:
    save(tmp_path / "in", "a.png", NOISY)
    tifffile.imwrite(tmp_path / "mask.tif", pages, photometric="minisblack")
    (image,) = run(tmp_path, mask=tmp_path / "mask.tif").images
    assert image.reason.startswith(f"a.png: {message}")


def test_holes_are_left_out_of_measuring_and_of_a_preview(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "nan.tif"
    noisy = 100 + 5 * np.random.default_rng(0).normal(size=(96, 96))
    noisy[:, 40:50] = np.nan
    tifffile.imwrite(path, noisy.astype(np.float32))
    assert measure_file(path, "nan.tif")[0].sigma == pytest.approx(5, rel=0.1)
    trial = try_strengths(read_image(path), GroupDenoiser(Options(quality="draft")))
    assert all(np.isfinite(t.residual_sd) for t in trial.trials)
    noisy[0, 0] = np.inf
    tifffile.imwrite(path, noisy.astype(np.float32))
    with pytest.raises(InputError, match=r"^nan\.tif: image holds inf at row 0"):
        try_strengths(read_image(path, "nan.tif"), GroupDenoiser(Options()))


def test_reencoding_the_rest_of_a_jpeg_is_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.fromarray(NOISY).save(tmp_path / "in" / "a.jpg")
    save(tmp_path / "in", "b.png", NOISY)
    notes = [" ".join(image.notes) for image in run(tmp_path, region=(10, 10, 30, 30)).images]
    assert ["--format png keeps it" in note for note in notes] == [True, False]
    for name in ("in/b.png", "out/a.jpg"):
        (tmp_path / name).unlink()
    assert "encoded again" not in " ".join(run(tmp_path).images[0].notes)


def test_a_mask_file_that_is_not_a_number_somewhere_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "in", "a.png", NOISY)
    tifffile.imwrite(tmp_path / "m.tif", np.where(DATA, 1, np.nan).astype(np.float32))
    (outcome,) = run(tmp_path, mask=tmp_path / "m.tif").images
    assert outcome.reason == "a.png: its mask m.tif: mask is not a number at 0, 0; give 1 where" + (
        " there are data, else 0"
    )
