"""Small image files that claim to be huge are refused by their headers."""

import hashlib
import io
import os
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from kpca_apps.errors import InputError
from kpca_apps.images import files
from kpca_apps.images.files import read_image
from kpca_apps.images.photographs.jpeg import read_jpeg
from kpca_apps.images.photographs.png import SIGNATURE, read_png
from kpca_apps.images.tags import TiffError, read_directories
from kpca_apps.images.tiff import read_tiff
from tests.hostile.images import png, saved, texture, tiff
from tests.images.dng import write_dng

READERS = {"png": read_png, "jpeg": read_jpeg, "tiff": read_tiff}
# Entries of a TIFF directory: (tag, type, count, value).
Entries = list[tuple[int, int, int, int]]


def entries(width: int, height: int, place: int, n_bytes: int, packing: int = 1) -> Entries:
    longs = {256: width, 257: height, 273: place, 278: height, 279: n_bytes}
    shorts = {258: 8, 259: packing, 262: 1, 277: 1}
    both = [(tag, 4, 1, value) for tag, value in longs.items()]
    return sorted(both + [(tag, 3, 1, value) for tag, value in shorts.items()])


def directory(tags: Entries, following: int = 0) -> bytes:
    packed = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return struct.pack("<H", len(tags)) + packed + struct.pack("<I", following)


def chain(tags: Entries, n_pages: int, pixels: bytes) -> bytes:
    """Return a TIFF whose pages all have the same tags."""
    size = len(directory(tags))
    first = 8 + len(pixels)
    places = [first + size * number for number in range(n_pages)]
    pages = (directory(tags, following) for following in [*places[1:], 0])
    return struct.pack("<2sHI", b"II", 42, first) + pixels + b"".join(pages)


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_of_more_pixels_than_its_bits_is_refused(progressive: bool) -> None:
    content = saved(texture(16, 16, 3), "JPEG", progressive=progressive)
    frame = content.index(b"\xff\xc2" if progressive else b"\xff\xc0")
    lie = content[: frame + 5] + struct.pack(">HH", 13000, 13600) + content[frame + 9 :]
    with pytest.raises(InputError, match=r"13600 x 13000 pixels, more than its .* bytes"):
        read_jpeg(lie)


def test_a_progressive_jpeg_of_more_pixels_than_its_first_scan_is_refused() -> None:
    # The file is long enough for the number of pixels it claims.
    content = saved(texture(1000, 1200, 3), "JPEG", progressive=True)
    frame = content.index(b"\xff\xc2")
    lie = content[: frame + 5] + struct.pack(">HH", 13300, 13300) + content[frame + 9 :]
    assert 512 * len(lie) > 13300**2
    with pytest.raises(InputError, match="13300 x 13300"):
        read_jpeg(lie)


def test_a_jpeg_of_one_colour_is_no_lie() -> None:
    for mode in ("L", "RGB"):
        for options in ({}, {"progressive": True}):
            file = io.BytesIO()
            picture = Image.new(mode, (3000, 2000), 77)
            picture.save(file, "JPEG", quality=1, optimize=True, **options)
            assert read_jpeg(file.getvalue()).page(0).shape[:2] == (2000, 3000)


def test_a_jpeg_of_thousands_of_scans_is_refused() -> None:
    content = saved(texture(16, 16), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    lie = content[:last] + content[last:-2] * 3000 + content[-2:]
    with pytest.raises(InputError, match=r"more than 100 scans, .*; save it again"):
        read_jpeg(lie)


def test_tags_that_lie_over_one_another_are_refused() -> None:
    n_bytes = 20_000
    tags = entries(4, 4, 8, 16) + [(60_000 + at, 7, n_bytes, 8) for at in range(1000)]
    content = struct.pack("<2sHI", b"II", 42, 8 + n_bytes) + bytes(n_bytes) + directory(tags)
    with pytest.raises(InputError, match=r"one over the other.*fetch the file again"):
        read_tiff(content)
    with pytest.raises(TiffError):
        next(read_directories(content))
    assert read_png(saved(texture(8, 8), "PNG", exif=content)).metadata.orientation == 1


def test_directories_that_lie_over_one_another_are_refused() -> None:
    # 400 directories of 4000 tags overlap: each begins one tag (12 bytes) after the previous one.
    n_tags, n_pages = 4000, 400
    slots = np.zeros((n_tags + n_pages + 1, 6), "<u2")
    slots[:] = (n_tags, 1, 1, 0, 0, 0)
    places = 8 + 12 * np.arange(1, n_pages + 1)
    body = bytearray(slots.tobytes())
    for number, following in enumerate(places):
        struct.pack_into("<I", body, 12 * (number + n_tags) + 2, following)
    content = struct.pack("<2sHI", b"II", 42, 8) + bytes(body)
    with pytest.raises(InputError):
        read_tiff(content)


@pytest.mark.parametrize("packing", [1, 8, 5, 34925])
def test_pages_that_share_their_pixels_are_refused(packing: int) -> None:
    side = 3000
    pixels = zlib.compress(bytes(side * side)) if packing == 8 else bytes(4096)
    if packing == 1:
        side = 64
    one = entries(side, side, 8, len(pixels), packing)
    assert len(read_tiff(chain(one, 1, pixels)).pages) == 1
    with pytest.raises(InputError, match=r"1500 pages promise more pixels than its .* bytes"):
        read_tiff(chain(one, 1500, pixels))


def test_many_honest_pages_are_read() -> None:
    pixels = [texture(4, 5) for _ in range(500)]
    file = io.BytesIO()
    pictures = [Image.fromarray(page) for page in pixels]
    pictures[0].save(file, "TIFF", save_all=True, append_images=pictures[1:])
    image = read_tiff(file.getvalue())
    assert len(image.pages) == 500
    np.testing.assert_array_equal(image.page(499), pixels[499])


SMALL = {
    "png grey": ("png", saved(texture(5, 6), "PNG")),
    "png interlaced": ("png", png(6, 5, bytes(500), depth=16, colour=6, lacing=1)),
    "png transparent": ("png", saved(texture(5, 6), "PNG", transparency=3)),
    "jpeg grey": ("jpeg", saved(texture(9, 10), "JPEG")),
    "jpeg progressive": ("jpeg", saved(texture(9, 10, 3), "JPEG", progressive=True)),
    "tiff tiles": ("tiff", tiff(texture(9, 10), tile=(16, 16), compression="zlib")),
    "tiff lzw": ("tiff", saved(texture(9, 10), "TIFF", compression="tiff_lzw")),
    "tiff big": ("tiff", tiff(texture(9, 10), bigtiff=True, byteorder=">")),
}


@pytest.mark.parametrize("what", SMALL)
def test_cut_anywhere_or_one_byte_wrong_it_is_read_or_refused_in_one_line(what: str) -> None:
    kind, content = SMALL[what]
    n_refused = 0
    for place in range(len(content)):
        for damaged in (
            content[:place],
            content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :],
        ):
            damaged = _with_right_sums(damaged) if kind == "png" else damaged
            try:
                image = READERS[kind](damaged)
                assert image.page(0).shape == image.pages[0].shape
            except InputError as error:
                n_refused += 1
                assert str(error).isprintable()
    assert n_refused > len(content) / 3


def _with_right_sums(content: bytes) -> bytes:
    """Correct the checksum of each PNG chunk, so that only the chunk's content is damaged."""
    fixed, place = bytearray(content), len(SIGNATURE)
    while place + 12 <= len(content):
        end = place + 12 + int.from_bytes(content[place : place + 4], "big")
        if end > len(content):
            break
        fixed[end - 4 : end] = struct.pack(">I", zlib.crc32(content[place + 4 : end - 4]))
        place = end
    return bytes(fixed)


GIGABYTE = 1 << 30
WHOLE = {
    "png": saved(texture(40, 60), "PNG"),
    "jpeg": saved(texture(40, 60), "JPEG"),
    "bmp": saved(texture(40, 60), "BMP"),
    "netpbm": saved(texture(40, 60), "PPM"),
    "webp": saved(texture(40, 60, 3), "WEBP", lossless=True),
    "jp2": saved(texture(40, 60), "JPEG2000"),
    "jxl": imagecodecs.jpegxl_encode(texture(40, 60), usecontainer=True),
    "jxl bare": imagecodecs.jpegxl_encode(texture(40, 60)),
    "tiff": tiff(texture(40, 60)),
}


def sparse(content: bytes, path: Path, n_bytes: int = GIGABYTE) -> Path:
    """Return a large sparse file, which uses disk space only for its beginning."""
    path.write_bytes(content)
    os.truncate(path, n_bytes)
    return path


@contextmanager
def little_memory(most: int = 300 << 20) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", [what for what in WHOLE if what != "tiff"])
def test_a_file_far_larger_than_its_image_is_refused_unread(what: str, tmp_path: Path) -> None:
    path = sparse(WHOLE[what], tmp_path / "a")
    with little_memory(), pytest.raises(InputError, match=r"60 x 40 pixels.*1,073,741,824 bytes"):
        read_image(path, "a")


@pytest.mark.parametrize("head", [*(data[:13] for data in WHOLE.values()), b"GIF89a"], ids=str)
def test_a_large_file_that_only_begins_like_an_image_is_refused_unread(
    head: bytes, tmp_path: Path
) -> None:
    path = sparse(head, tmp_path / "a")
    with little_memory(), pytest.raises(InputError, match=r"^a: .*; [^;]*\.$"):
        read_image(path, "a")


def test_only_the_pages_of_a_large_tiff_are_read(tmp_path: Path) -> None:
    path = sparse(WHOLE["tiff"], tmp_path / "a.tif", 1 << 27)
    with little_memory(1 << 25):
        image = read_image(path)
        np.testing.assert_array_equal(image.page(0), texture(40, 60))
    assert image.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    os.utime(path, ns=(0, 0))
    with pytest.raises(InputError, match="changed"):
        image.page(0)
    # The file claims a single strip of a gigabyte.
    head = struct.pack("<2sHI", b"II", 42, 8) + directory(entries(60, 40, 500, GIGABYTE - 500, 8))
    with little_memory(), pytest.raises(InputError, match="60 x 40 pixels"):
        read_image(sparse(head, path))


def test_of_a_large_raw_file_libraw_reads_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rawpy")
    path = write_dng(tmp_path / "a.dng", np.arange(64 * 80, dtype=np.uint16).reshape(64, 80))
    expected = read_image(path).page(0)
    with monkeypatch.context() as patched:
        patched.setattr(files, "FRONT", 1000)
        np.testing.assert_array_equal(read_image(path).page(0), expected)
    with little_memory(), pytest.raises(InputError, match="80 x 64 pixels"):
        read_image(sparse(path.read_bytes(), path))
