"""A batch with pipes, circular links, long names and blocked paths finishes its other images."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.batch.one_image import work
from kpca_apps.denoise.batch.run import run_batch
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.result import DenoisingResult
from kpca_apps.errors import ConfigError, InputError, RefusedError
from kpca_apps.images.files import encode_image
from kpca_apps.images.types import ImageFile
from kpca_apps.system.stores import buckets
from tests.denoise.toy import Info
from tests.hostile.images import saved, texture, tiff

GREY = saved(texture(20, 30), "PNG")
posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and free links are POSIX's")


def keep(pixels: np.ndarray, channel_axis: int | None) -> tuple[np.ndarray, Any]:
    return pixels.astype(np.float32), Info(sigma=1.0, estimated=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.png").write_bytes(GREY)
    return folder


def run(inputs: Path | list[Path], **options: Any) -> DenoisingResult:
    given = inputs if isinstance(inputs, list) else [inputs]
    folder = given[0] if given[0].is_dir() else given[0].parent
    result = run_batch(
        given, folder.parent / "out", {}, denoise=options.pop("denoise", keep), **options
    )
    for image in result.images:
        assert image.reason.isprintable()
    assert [path.name for path in folder.parent.rglob("*") if path.name.endswith(".partial")] == []
    return result


def outcomes(result: DenoisingResult) -> dict[str, str]:
    return {image.name: image.reason or image.status for image in result.images}


def circular_link(path: Path) -> None:
    path.symlink_to(path)


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


@posix
@pytest.mark.parametrize("make", [os.mkfifo, circular_link, dangling_link, Path.mkdir])
def test_non_files_in_a_folder_are_skipped(make: Callable[[Path], None], folder: Path) -> None:
    make(folder / "a.png")
    assert outcomes(run(folder)) == {"good.png": "ok"}


@posix
@pytest.mark.parametrize(
    ("make", "words"),
    [(os.mkfifo, "no regular file"), (circular_link, "cannot be read"), (dangling_link, "no such")],
)
def test_non_files_given_by_name_are_listed(
    make: Callable[[Path], None], words: str, folder: Path
) -> None:
    make(folder / "a.png")
    named = [folder / "a.png", folder / "good.png"]
    (folder.parent / "out").mkdir()
    for _ in range(2):
        statuses = outcomes(run(named))
        assert words in statuses["a.png"]
        assert statuses["good.png"] == "ok"


@posix
def test_an_input_that_became_a_pipe_does_not_hold_up_the_next_run(folder: Path) -> None:
    run(folder)
    (folder / "good.png").unlink()
    os.mkfifo(folder / "good.png")
    with pytest.raises(RefusedError):
        run([folder / "good.png"])


@posix
@pytest.mark.parametrize("name", ["h\n(c).png", "\x1b[31m.png", "\u202egnp.png", "\U0001f600.png"])
def test_a_failure_names_its_file_once(name: str, folder: Path) -> None:
    (folder / name).write_bytes(GREY[:50])
    shown = repr(name)[1:-1] if not name.startswith("\U0001f600") else name
    assert outcomes(run(folder))[name] == f"{shown}: is cut short; fetch the file again."


@posix
def test_a_result_of_too_long_a_name_fails_alone(folder: Path) -> None:
    (folder / ("x" * 255)).write_bytes(GREY)
    statuses = outcomes(run(folder, format="tiff"))
    assert "give the image a shorter name" in statuses["x" * 255] and statuses["good.png"] == "ok"


def test_a_file_in_the_place_of_a_folder_is_refused_before_the_work(folder: Path) -> None:
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "b.png").write_bytes(GREY)
    (folder.parent / "out").mkdir()
    (folder.parent / "out" / "sub").write_bytes(b"mine")
    with pytest.raises(RefusedError, match=r"^sub: is a file in the output folder"):
        run(folder)
    assert (folder.parent / "out" / "sub").read_bytes() == b"mine"


@posix
def test_links_in_a_circle_in_the_place_of_folders_are_refused(folder: Path) -> None:
    circular_link(folder.parent / "out")
    with pytest.raises(RefusedError, match="is a link that leads nowhere"):
        run(folder)
    (folder.parent / "out").unlink()
    (folder / "sub").mkdir()
    (folder / "sub" / "b.png").write_bytes(GREY)
    (folder.parent / "out").mkdir()
    circular_link(folder.parent / "out" / "sub")
    with pytest.raises(RefusedError, match=r"^sub: "):
        run(folder)


def test_a_full_disk_ends_the_batch_and_keeps_what_is_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "next.png").write_bytes(GREY)

    def fill(file: IO[bytes], pages: Any, like: ImageFile, *, format: str) -> None:
        encode_image(file, pages, like, format=format)
        if like.label == "next.png":
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(work, "encode_image", fill)
        with pytest.raises(InputError, match=r"next\.png: .*No space left.*; make room"):
            run(folder)
    out = folder.parent / "out"
    assert sorted(path.name for path in out.glob("[!.]*")) == ["good.png", "manifest.jsonl"]
    assert [(image.name, image.resumed) for image in run(folder).images] == [
        ("good.png", True),
        ("next.png", False),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.inf, "holds inf at row 3, column 4"), (-np.inf, "holds -inf"), (3e38, "too wide")],
)
def test_float_pixels_that_cannot_be_computed_with_are_listed(
    value: float, words: str, folder: Path
) -> None:
    pixels = texture(20, 30).astype(np.float32)
    pixels[3, 4] = value
    (folder / "a.tif").write_bytes(tiff(pixels))
    mode = GroupDenoiser(Options(quality="fast"), sigma=9.0)
    assert words in outcomes(run([folder / "a.tif"], denoise=mode))["a.tif"]


@posix
def test_a_folder_called_like_an_address_is_on_this_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "s3:" / "bucket"
    inner.mkdir(parents=True)
    (inner / "x.png").write_bytes(GREY)
    monkeypatch.setattr(buckets, "_s3_system", lambda *_: pytest.fail("a store was requested"))
    monkeypatch.chdir(folder)
    for given, names in (
        (".", ["good.png", "s3:/bucket/x.png"]),
        ("s3:", ["bucket/x.png"]),
        ("s3:/bucket", ["x.png"]),
        ("*/bucket", ["s3:/bucket/x.png"]),
        ("./s3:/bucket/x.png", ["x.png"]),
    ):
        result = run_batch([given], folder.parent / "out", {}, denoise=keep, reference=None)
        assert [(one.name, one.status) for one in result.images] == [(name, "ok") for name in names]
    with pytest.raises(ConfigError, match="is the noisy image itself"):
        run_batch(["."], folder.parent / "out", {}, denoise=keep, reference=".")
    result = run_batch(["good.png"], "./s3:/out", {}, denoise=keep, reference="./s3:/bucket/x.png")
    assert result.images[0].comparison is not None
    assert (folder / "s3:/out/good.png").is_file()
