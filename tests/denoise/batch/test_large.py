"""Pages that are read, denoised and written in bands, as if they were too large for memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from skimage.data import brick

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import ImageOutcome
from tests.images.laboratory.test_ome_zarr import made

CLEAN = brick()[:300, :340]
NOISY = np.clip(CLEAN + 15 * np.random.default_rng(0).normal(size=CLEAN.shape), 0, 255)
NOISY = NOISY.astype(np.uint8)
DRAFT = GroupDenoiser(Options(quality="draft"), sigma=15.0)
TILES = {"tile": (32, 48), "compression": "zlib", "metadata": None}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take pages of some thousand pixels for large."""
    for name in ("images.types.MAX_PIXELS", "denoise.batch.large.SQUARE"):
        monkeypatch.setattr(f"kpca_apps.{name}", 128 if "SQUARE" in name else 60_000)
    monkeypatch.setattr("kpca_apps.images.bands.ROWS", 64)
    monkeypatch.setattr("kpca_apps.denoise.batch.large.COLUMNS", 100)


def run(folder: Path, denoiser: GroupDenoiser = DRAFT, **options: Any) -> ImageOutcome:
    result = run_batch(
        [folder / "in"], folder / "out", denoiser.settings, denoise=denoiser, force=True, **options
    )
    return result.images[0]


def write(folder: Path, pixels: NDArray[Any], **options: Any) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    tifffile.imwrite(folder / "in" / "a.tif", pixels, **{**TILES, **options})
    return folder / "out" / "a.tif"


def error(path: Path) -> float:
    return float(np.std(tifffile.imread(path).astype(float) - CLEAN))


@pytest.mark.parametrize("options", [{}, {"tile": None, "rowsperstrip": 7, "compression": None}])
def test_bands_have_no_seams(tmp_path: Path, small: None, options: dict[str, Any]) -> None:
    done = write(tmp_path, NOISY, **options)
    assert not run(tmp_path).reason
    found = tifffile.imread(done)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kpca_apps.images.types.MAX_PIXELS", 10**9)
        patched.setattr("kpca_apps.images.tiff.MAX_PIXELS", 10**9)
        done.unlink()  # else it would not be done again
        run(tmp_path)
    whole, at_once = tifffile.imread(done), error(done)
    assert np.std(found.astype(float) - CLEAN) < 1.03 * at_once < 0.6 * 15
    difference = np.abs(found.astype(float) - whole)
    at_seams = difference[63::64][:4]
    assert difference.mean() < 1.5 and at_seams.mean() < 1.3 * difference.mean()


@pytest.mark.parametrize("chunks", [(1, 1, 32, 48), (1, 2, 32, 340)])
def test_bands_of_ome_zarr(tmp_path: Path, small: None, chunks: tuple[int, ...]) -> None:
    zarr = pytest.importorskip("zarr")
    pixels = np.stack([NOISY, NOISY[::-1]])[np.newaxis]
    made(tmp_path / "in" / "a.zarr", pixels, chunks=chunks)
    assert not run(tmp_path).reason
    found, half = (
        zarr.open_array(str(tmp_path / f"out/a.zarr/{level}"), mode="r")[:].astype(float)
        for level in (0, 1)
    )
    assert np.std(found[0, 0] - CLEAN) < 0.6 * 15
    assert np.std(found[0, 1] - CLEAN[::-1]) < 0.6 * 15
    means = found.reshape(1, 2, 150, 2, 170, 2).mean(axis=(3, 5))
    np.testing.assert_allclose(half, means, rtol=0, atol=0.5)


def test_copies_and_tiles_of_a_large_page_are_those_of_a_small_one(
    tmp_path: Path, small: None
) -> None:
    done = write(tmp_path, NOISY)
    colours = np.dstack([NOISY, NOISY[::-1], NOISY[:, ::-1], np.full_like(NOISY, 200)])
    with tifffile.TiffWriter(tmp_path / "in" / "a.tif", bigtiff=True) as file:
        options: dict[str, Any] = {**TILES, "photometric": "rgb", "extrasamples": ["unassalpha"]}
        file.write(colours, subifds=1, **options)
        file.write(colours[: 300 // 3, : 340 // 3], subfiletype=1, **options)
        file.write(colours[:75, :85], **options)
    outcome = run(tmp_path)
    assert not outcome.reason and outcome.n_pages == 2
    with tifffile.TiffFile(done) as file:
        first, second = file.pages
        whole = first.asarray()
        assert file.is_bigtiff and (first.tilelength, first.tilewidth) == (32, 48)
        assert (whole[..., 3] == 200).all() and np.mean(whole[..., :3] != colours[..., :3]) > 0.9
        for copy, times in ((first.pages[0], 3), (second, 4)):
            cut = whole[: 300 // times * times, : 340 // times * times].astype(float)
            blocks = cut.reshape(len(cut) // times, times, -1, times, 4).mean(axis=(1, 3))
            np.testing.assert_allclose(copy.asarray(), blocks, atol=0.51)


def test_noise_of_a_large_page_is_measured(tmp_path: Path, small: None) -> None:
    done = write(tmp_path, NOISY)
    outcome = run(tmp_path, GroupDenoiser(Options(quality="draft")))
    assert outcome.estimated and outcome.sigma == pytest.approx(15, rel=0.15)
    assert error(done) < 0.6 * 15 and outcome.residual is not None


@pytest.mark.parametrize(
    ("denoiser", "options", "message"),
    [
        (GroupDenoiser(Options(noise="camera")), {}, "noise is 'camera', but a page of this size"),
        (GroupDenoiser(Options(), region=(0, 0, 8, 8)), {}, "region cannot be used for a page of"),
        (DRAFT, {"format": "png"}, "megapixels, which PNG cannot hold"),
    ],
)
def test_what_needs_the_whole_is_refused(
    tmp_path: Path, small: None, denoiser: GroupDenoiser, options: dict, message: str
) -> None:
    write(tmp_path, NOISY)
    assert message in run(tmp_path, denoiser, **options).reason
