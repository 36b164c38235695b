"""One image of a batch: temporary files, pages, and exceptions while it is denoised."""

import errno
import os
import signal
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from kpca_apps.denoise.batch.denoisers import GroupDenoiser, PageDenoiser
from kpca_apps.denoise.batch.pages import _singly, left_note
from kpca_apps.denoise.estimate.info import DenoiseInfo
from kpca_apps.denoise.options import Options
from kpca_apps.errors import InputError
from kpca_apps.images.types import ImageFile, Page
from tests.denoise.batch.test_run import folder, run
from tests.denoise.toy import Info, contents, picture, save, smooth
from tests.quick import quick

__all__ = ["folder"]


def test_a_page_is_released_after_its_last_copy(tmp_path: Path) -> None:
    whole, half = (Page(side, side, 1, np.dtype("f4")) for side in (16, 8))
    pages, copies = (whole, half, half, whole, half), {1: 0, 2: 0, 4: 3}
    image = ImageFile("tiff", pages, lambda n: np.ones(pages[n].shape, "f4"), copies=copies)
    calls = []

    def watched(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        result = pixels.copy()
        calls.append(weakref.ref(result))
        return result, Info()

    found = _singly(image, PageDenoiser(watched), tmp_path)
    assert [next(found)[0].shape for _ in range(3)] == [(16, 16), (8, 8), (8, 8)]
    assert next(found)[0].shape == (16, 16) and calls[0]() is None
    assert next(found)[0].shape == (8, 8)


@pytest.mark.parametrize("jobs", quick([1, 2], 1))
def test_long_names_with_a_common_start_are_distinguished(jobs: int, tmp_path: Path) -> None:
    names = [
        f"Experiment_2024-03-17_plate_B_well_C07_channel_DAPI_field{n:02}.png" for n in range(8)
    ]
    for number, name in enumerate(names):
        save(tmp_path / "in", name, picture(number))
    assert [image.status for image in run(tmp_path, jobs=jobs).images] == ["ok"] * len(names)
    for number, name in enumerate(names):
        with Image.open(tmp_path / "out" / name) as seen:
            expected = np.rint(smooth(picture(number), None)[0])
            np.testing.assert_array_equal(np.array(seen), expected)


def test_a_file_in_the_way_of_an_unfinished_one_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * (2 * n))
    monkeypatch.setattr("kpca_apps.denoise.batch.results.remove_partial", lambda folder: None)
    partials: list[Path] = []

    def watched(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        partials.extend((folder / "watched").rglob(".*"))
        return smooth(pixels, channel_axis)

    run(folder, "watched", denoise=watched)
    (foreign,) = {path.relative_to(folder / "watched") for path in partials[:1]}
    (folder / "third").mkdir()
    (folder / "third" / foreign).write_bytes(b"precious")
    with pytest.raises(InputError):
        run(folder, "third")
    assert (folder / "third" / foreign).read_bytes() == b"precious"


def choosy(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
    """A denoiser that raises on grey images."""
    if pixels.ndim == 2:
        raise TypeError("unsupported operand")
    return smooth(pixels, channel_axis)


@pytest.mark.parametrize("jobs", quick([1, 2], 1))
def test_an_exception_costs_one_image_and_is_located(folder: Path, jobs: int) -> None:
    result = run(folder, denoise=choosy, jobs=jobs)
    assert [image.name for image in result.failed] == ["grey.png"]
    (failed,) = result.failed
    assert failed.reason == "grey.png: a bug in kpca, TypeError: unsupported operand"
    assert "in choosy" in failed.bug
    assert list(contents(folder / "out")) == ["sub/colour.png", "sub/deeper/photo.jpg"]


def killed(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
    """Kill the process on grey images, as the kernel's out-of-memory killer does."""
    if pixels.ndim == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return smooth(pixels, channel_axis)


@pytest.mark.release
@pytest.mark.skipif(sys.platform == "win32", reason="no signal that cannot be caught")
def test_a_killed_worker_costs_one_image_and_is_reported_in_one_line(folder: Path) -> None:
    (lost,) = run(folder, denoise=killed, jobs=2).failed
    assert lost.reason == (
        "grey.png: the system killed its worker process, most likely because memory ran out; "
        "use fewer --jobs, or cut the image."
    )
    assert list(contents(folder / "out")) == ["sub/colour.png", "sub/deeper/photo.jpg"]
    # Finished images are kept, and no temporary files remain.
    again = run(folder)
    assert (again.n_failed, again.n_resumed) == (0, 2)


def test_an_error_in_denoising_is_not_reported_as_one_in_writing(folder: Path) -> None:
    def unlucky(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        if pixels.ndim == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return smooth(pixels, channel_axis)

    (failed,) = run(folder, denoise=unlucky).failed
    assert failed.reason.startswith("grey.png: a bug in kpca, RuntimeError: OSError: ")
    assert "in unlucky" in failed.bug
    assert len(contents(folder / "out")) == 2


def test_levels_of_pages_of_different_types_are_kept_apart(tmp_path: Path) -> None:
    levels = {"uint8": 5.0, "uint16": 2371.0, "float32": 0.125}
    ranges = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}

    def by_type(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        dtype = str(pixels.dtype)
        return pixels, Info(sigma=levels[dtype], data_range=ranges[dtype])

    (tmp_path / "in").mkdir()
    order = ["uint8", "uint16", "uint8", "float32"]
    pages = [(picture(n) / 255 * ranges[dtype]).astype(dtype) for n, dtype in enumerate(order)]
    for place in ("in", "clean"):
        (tmp_path / place).mkdir(exist_ok=True)
        with tifffile.TiffWriter(tmp_path / place / "a.tif") as file:
            for page in pages:
                off = (place == "clean") * np.asarray(np.ptp(page) * 0.1, page.dtype)
                file.write(page - np.minimum(page, off), contiguous=False)
    (image,) = run(tmp_path, denoise=by_type, reference=tmp_path / "clean").images
    assert (image.sigma, image.data_range) == (5.0, 255.0)
    assert image.page_sigmas == tuple(levels[dtype] for dtype in order)
    assert image.page_ranges == tuple(ranges[dtype] for dtype in order)
    assert "on 1 page of uint16 it is 2.37e+03 of 65535" in " ".join(image.notes)
    assert "on 1 page of float32 it is 0.125 of 1" in " ".join(image.notes)
    # Each page is compared on its own scale: errors of a tenth of the range give about 20 dB.
    assert image.comparison is not None
    assert 19 < image.comparison.denoised.psnr < 22


def test_levels_of_speckle_pages_are_fractions_and_not_mixed_with_others(tmp_path: Path) -> None:
    def by_light(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        is_dark = pixels.max() < 100
        return pixels, Info(noise="speckle", sigma=0.2) if is_dark else Info(sigma=10.0)

    (tmp_path / "in").mkdir()
    with tifffile.TiffWriter(tmp_path / "in" / "a.tif") as file:
        for light in (255, 50, 255):
            file.write(np.full((8, 8), light, np.uint8), contiguous=False)
    (image,) = run(tmp_path, denoise=by_light).images
    assert (image.noise, image.sigma) == ("gaussian", 10.0)
    assert "on 1 page of speckle it is 0.2 of the intensity" in " ".join(image.notes)


def test_an_unchanged_image_is_the_same_file(tmp_path: Path) -> None:
    def leave(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        return pixels.astype(np.float32), Info(established=False)

    colours = picture(0, (24, 30, 3))
    save(tmp_path / "in", "a.jpg", colours, quality=60)  # a JPEG encoded again has other pixels
    folder = tmp_path / "in"
    Image.fromarray(colours).quantize(16).save(folder / "b.png")  # with a palette
    assert [image.notes for image in run(tmp_path, denoise=leave).images] == [(), ()]
    found = contents(tmp_path / "out")
    assert [found[name] for name in ("a.jpg", "b.png")] == [*contents(folder).values()]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Path.unlink, "no such file"),
        (lambda path: path.write_bytes(path.read_bytes() + b"more"), "changed during"),
    ],
)
def test_an_image_that_changes_before_it_is_copied_is_refused(
    change: Any, words: str, tmp_path: Path
) -> None:
    save(tmp_path / "in", "a.png", picture(0))
    save(tmp_path / "in", "b.png", picture(1))

    def leave(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Info]:
        if np.array_equal(pixels, picture(0)):
            change(tmp_path / "in" / "a.png")
        return pixels.astype(np.float32), Info(established=False)

    first, second = run(tmp_path, denoise=leave).images
    assert (first.status, second.status) == ("failed", "ok")
    assert words in first.reason and [*contents(tmp_path / "out")] == ["b.png"]


def test_pages_of_a_stack_that_are_noisier_than_its_level_are_named() -> None:
    rng, stack = np.random.default_rng(0), SimpleNamespace(stack=True)
    blocks = np.kron(1000.0 * rng.integers(0, 2, (6, 6)), np.ones((16, 16)))
    wave = np.sin(np.arange(96) * 1.3)
    left = [blocks + rng.normal(0, level, (96, 96)) for level in (20, 20, 500, 20, 450)]
    left[3] += 1000 * np.outer(wave, wave)  # texture, not noise
    info = DenoiseInfo("gaussian", 100.0, (100.0,), True, False, 65535.0)
    page = Page(96, 96, 1, np.dtype("u2"))
    image = ImageFile("tiff", (page,) * 5, lambda n: (left[n] + 3000).astype(np.uint16))
    (note,) = left_note(image, [info] * 5, stack)
    assert "remains on pages 3 and 5, where" in note
    left[2:5:2] = left[0], left[1]
    assert left_note(image, [info] * 5, stack) == ()
    # The three channels of a colour page are compared with their own levels.
    pages = [3000 + blocks[..., None] + rng.normal(0, k, (96, 96, 3)) for k in (80, 150)]
    colours = replace(info, channel_sigma=(100.0,) * 3)
    page = Page(96, 96, 3, np.dtype("u2"))
    image = ImageFile("tiff", (page,) * 2, lambda n: pages[n].astype(np.uint16))
    (note,) = left_note(image, [colours] * 2, stack)
    assert "remains on page 2, where" in note


def test_a_batch_does_not_warn_about_single_images() -> None:
    denoiser = GroupDenoiser(Options(quality="fast"), sigma=0.5)
    # The level 0.5 may be meant as a share of the data range. The command warns of this once for
    # the whole batch, not for each image; here a warning would raise an error.
    assert denoiser.clean(picture(0).astype(np.uint8)).info.sigma == 0.5
