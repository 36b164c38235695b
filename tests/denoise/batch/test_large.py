"""Pages are read, denoised and written in bands, as if they were too large for memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from skimage.data import brick

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.large import _filling
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.estimate.law import law_of_nothing
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import ImageOutcome
from kpca_apps.images.pyramids import smaller_copy
from kpca_apps.images.types import Page
from tests.images.laboratory.test_ome_zarr import made
from tests.quick import quick

CLEAN = brick()[:300, :340]
NOISY = np.clip(CLEAN + 15 * np.random.default_rng(0).normal(size=CLEAN.shape), 0, 255)
NOISY = NOISY.astype(np.uint8)
DRAFT = GroupDenoiser(Options(quality="draft"), sigma=15.0)
TILES = {"tile": (32, 48), "compression": "zlib", "metadata": None}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat pages of more than 60,000 pixels as large, and read them in small bands."""
    for name in ("images.types.MAX_PIXELS", "denoise.batch.large.SQUARE"):
        monkeypatch.setattr(f"kpca_apps.{name}", 128 if "SQUARE" in name else 60_000)
    monkeypatch.setattr("kpca_apps.images.large.ROWS", 64)
    monkeypatch.setattr("kpca_apps.denoise.batch.large.ROWS", 56)
    monkeypatch.setattr("kpca_apps.denoise.batch.large.COLUMNS", 84)


def run(folder: Path, denoiser: GroupDenoiser = DRAFT, **options: Any) -> ImageOutcome:
    return run_batch(
        [folder / "in"], folder / "out", denoiser.settings, denoise=denoiser, force=True, **options
    ).images[0]


def write(folder: Path, pixels: NDArray[Any], **options: Any) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    tifffile.imwrite(folder / "in" / "a.tif", pixels, **{**TILES, **options})
    return folder / "out" / "a.tif"


def error(path: Path) -> float:
    return float(np.std(tifffile.imread(path).astype(float) - CLEAN))


def denoise_whole(folder: Path, denoiser: GroupDenoiser) -> NDArray[Any]:
    (folder / "out" / "a.tif").unlink()  # an existing result would be reused
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kpca_apps.images.types.MAX_PIXELS", 10**9)
        assert not run(folder, denoiser).reason
    return tifffile.imread(folder / "out" / "a.tif")


DARK = np.clip(0.4 * NOISY - 10.0, 0, 255).astype(np.uint8)  # clipped at black
LAW = replace(law_of_nothing(0.0), constant=15.0**2, blur=0.5)
PAGES = {
    "grey": NOISY,
    "floats": NOISY.astype(np.float32) / 3 - 50,
    "colours": np.dstack([NOISY, DARK, NOISY[::-1]]),
    "an empty channel": np.dstack([NOISY, np.zeros_like(NOISY), NOISY[::-1]]),
}


@pytest.mark.parametrize(
    ("what", "quality", "noise", "sigma"),
    quick(
        [
            ("grey", "fast", "gaussian", 15.0),
            ("grey", "draft", "auto", None),  # no sigma: correlated noise, stated by `LAW`
            ("floats", "draft", "gaussian", 5.0),
            ("colours", "fast", "gaussian", 15.0),
            ("an empty channel", "draft", "poisson", 20.0),
        ],
        ("grey", "draft", "auto", None),
        ("grey", "fast", "gaussian", 15.0),
    ),
)
def test_bands_nearly_equal_the_page_in_one_piece(
    tmp_path: Path, small: None, what: str, quality: str, noise: str, sigma: float | None
) -> None:
    pixels = PAGES[what]
    done = write(tmp_path, pixels, photometric="rgb" if pixels.ndim == 3 else "minisblack")
    options = Options(quality=quality, noise=noise, strength=0.9)
    laws = () if sigma else (LAW,)
    denoiser = GroupDenoiser(options, sigma=sigma, data_range=None if sigma else 255.0, laws=laws)
    assert not run(tmp_path, denoiser).reason
    found = tifffile.imread(done).astype(float)
    whole = denoise_whole(tmp_path, denoiser).astype(float)
    assert np.mean(found != pixels) > 0.5
    difference, seams = np.abs(found - whole), np.s_[96 + 56 - 1 :: 56]
    level = sigma or 15.0
    assert difference.mean() < 0.06 * level and difference[seams].mean() < 0.06 * level


@pytest.mark.release
def test_tiles_of_a_file_have_no_influence(tmp_path: Path, small: None) -> None:
    found = []
    for tile in ((32, 48), (112, 64)):
        done = write(tmp_path, NOISY, tile=tile)
        assert not run(tmp_path).reason
        found.append(tifffile.imread(done))
    assert np.array_equal(*found) and np.mean(found[0] != NOISY) > 0.8


@pytest.mark.release
def test_missing_data_in_a_large_page_are_kept_and_ignored(tmp_path: Path, small: None) -> None:
    holes = NOISY.astype(np.float32)
    holes[:200] = np.nan  # a gap taller than a band with its margin
    holes[250, 10:20] = np.nan
    denoiser = GroupDenoiser(Options(quality="draft"), sigma=15.0, data_range=255.0)
    done = write(tmp_path, holes)
    assert not run(tmp_path, denoiser).reason
    found = tifffile.imread(done)
    assert np.array_equal(np.isnan(found), np.isnan(holes)) and np.nanstd(found - CLEAN) < 0.7 * 15
    alpha = np.where(np.isnan(holes), 0, 255).astype(np.uint8)
    colours = np.dstack([NOISY, NOISY[::-1], NOISY[:, ::-1], alpha])
    options: dict[str, Any] = {"photometric": "rgb", "extrasamples": ["unassalpha"]}
    found = []
    for hidden in (colours, np.where(alpha[..., None] == 0, np.uint8([9, 200, 0, 0]), colours)):
        done = write(tmp_path, hidden, **options)
        assert not run(tmp_path).reason
        found.append(tifffile.imread(done))
        assert np.array_equal(found[-1][alpha == 0], hidden[alpha == 0])
    assert np.array_equal(found[0][alpha > 0], found[1][alpha > 0])
    assert np.mean(found[0][alpha > 0][:, :3] != colours[alpha > 0][:, :3]) > 0.8


@pytest.mark.release
def test_an_alpha_of_zeros_is_ignored(tmp_path: Path, small: None) -> None:
    colours = np.dstack([NOISY, NOISY[::-1], NOISY[:, ::-1], np.zeros_like(NOISY)])
    done = write(tmp_path, colours, photometric="rgb", extrasamples=["unassalpha"])
    assert not run(tmp_path).reason
    assert np.mean(tifffile.imread(done)[..., :3] != colours[..., :3]) > 0.8


def test_lower_resolutions_wait_for_their_own_rows_only() -> None:
    rows = np.arange(4000)[:, None] * np.ones((1, 1009))
    whole = Page(4000, 1009, 1, np.dtype("f8"))
    sizes = (Page(108, 27, 1, whole.dtype), Page(39, 10, 1, whole.dtype))  # scaled 1:37 and 1:101
    copies = tuple(np.full(size.shape, -1.0) for size in sizes)
    bands = _filling((rows[top : top + 100] for top in range(0, 4000, 100)), copies, sizes, whole)
    for n, _ in enumerate(bands):
        # The copies hold every band except the last, which is filled in when the next band is
        # requested.
        assert np.sum(copies[0][:, 0] >= 0) == min(108, n * 100 // 37)
        assert np.sum(copies[1][:, 0] >= 0) == n * 100 // 101
    for copy, size, times in zip(copies, sizes, (37, 101), strict=True):
        assert np.array_equal(copy, smaller_copy(rows, size, times))


@pytest.mark.parametrize("chunks", [(1, 1, 32, 48), (1, 2, 32, 340)])
def test_bands_of_ome_zarr(tmp_path: Path, small: None, chunks: tuple[int, ...]) -> None:
    zarr = pytest.importorskip("zarr")
    made(tmp_path / "in" / "a.zarr", np.stack([NOISY, NOISY[::-1]])[np.newaxis], chunks=chunks)
    assert not run(tmp_path).reason
    found, half = (
        zarr.open_array(str(tmp_path / f"out/a.zarr/{level}"), mode="r")[:].astype(float)
        for level in (0, 1)
    )
    assert np.std(found[0, 0] - CLEAN) < 0.6 * 15 and np.std(found[0, 1] - CLEAN[::-1]) < 0.6 * 15
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
    assert any("are not counted" in note for note in outcome.notes)


@pytest.mark.parametrize("value", [1e9, np.inf])
def test_floats_between_the_measured_squares_are_checked(
    tmp_path: Path, small: None, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpca_apps.denoise.batch.large.SQUARE", 32)
    page = PAGES["floats"].copy()
    page[-1, -1] = value
    write(tmp_path, page)
    reason = run(tmp_path, GroupDenoiser(Options(quality="draft", noise="gaussian"), (5.0,))).reason
    assert ("infinite" in reason) == (value == np.inf) and bool(reason) == (value == np.inf)


@pytest.mark.parametrize(
    ("denoiser", "options", "message"),
    [
        (GroupDenoiser(Options(noise="camera")), {}, "noise is 'camera', but a page of this size"),
        (
            GroupDenoiser(Options(), region=(0, 0, 8, 8)),
            {},
            "region cannot be used for so large a page",
        ),
        (DRAFT, {"format": "png"}, "megapixels, which PNG cannot hold"),
    ],
)
def test_what_needs_the_whole_is_refused(
    tmp_path: Path, small: None, denoiser: GroupDenoiser, options: dict, message: str
) -> None:
    write(tmp_path, NOISY)
    assert message in run(tmp_path, denoiser, **options).reason


def test_stripes_are_sought_in_the_whole_page(tmp_path: Path, small: None) -> None:
    # Texture hides the offsets in the pieces on the right.
    rng = np.random.default_rng(5)
    texture = 8 * rng.normal(size=CLEAN.shape) * (np.arange(340) > 230)
    page = CLEAN * 0.2 + 100 + texture
    striped = page + 4 * rng.normal(size=page.shape) + 6 * rng.normal(size=(300, 1))
    done = write(tmp_path, striped.round().clip(0, 255).astype(np.uint8))
    outcome = run(tmp_path, replace(DRAFT, sigma=4.0))
    assert any("300 row offsets" in note for note in outcome.notes)
    left = tifffile.imread(done) - page
    for columns in np.split(left, [96 + 84, 96 + 2 * 84], axis=1):
        assert np.diff(columns.mean(axis=1)).std() < 2.5
