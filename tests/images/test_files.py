"""Images keep bit depth, channels, pages, tags, profiles and stored order."""

import functools
import io
import logging
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageCms

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.files import encode_image, read_image
from kpca_apps.images.types import ImageFile
from tests.hostile.images import chunk, encoded, png, saved, texture, tiff

SHAPES = {1: (23, 31), 2: (23, 31, 2), 3: (23, 31, 3), 4: (23, 31, 4)}


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        return rng.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def read_bytes(content: bytes, folder: Path, name: str = "in") -> ImageFile:
    path = folder / name
    path.write_bytes(content)
    return read_image(path)


def rewrite(image: ImageFile, folder: Path, format: str = "same") -> tuple[ImageFile, Path]:
    """Write an image's own pixels and read the file."""
    path = folder / f"again.{image.format}"
    path.write_bytes(encoded(image, format=format))
    return read_image(path), path


def exif_with_orientation(value: int) -> bytes:
    exif = Image.Exif()
    exif[274] = value
    exif[271] = "Maker"
    exif.get_ifd(34665)[33434] = 0.004
    return exif.tobytes().removeprefix(b"Exif\0\0")


@functools.cache
def profile() -> bytes:
    """Return an ICC profile, made only once because it holds its creation time."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def test_png_16_bit_colour_is_what_the_format_says(tmp_path: Path) -> None:
    rows = struct.pack(">B6HB6H", 0, 1, 256, 65535, 40000, 7, 0, 2, 1, 1, 1, 1, 1, 1)
    image = read_bytes(png(2, 2, rows, depth=16, colour=2), tmp_path)
    # The second row uses the "up" filter, byte by byte, without a carry between bytes.
    first = [[1, 256, 65535], [40000, 7, 0]]
    assert image.page(0).tolist() == [first, [[2, 257, 65280], [40001, 8, 1]]]


@pytest.mark.parametrize("mode", ["P", "PA", "1-2", "1-4", "interlaced", "tRNS"])
def test_png_of_rare_kinds(mode: str, tmp_path: Path) -> None:
    pixels = texture(19, 21)
    if mode in ("P", "PA"):
        picture = Image.fromarray(texture(19, 21, 3)).quantize(50)
        buffer = io.BytesIO()
        picture.save(buffer, "PNG", **({"transparency": bytes(range(50))} if mode == "PA" else {}))
        image = read_bytes(buffer.getvalue(), tmp_path)
        with Image.open(io.BytesIO(buffer.getvalue())) as seen:
            expected = np.array(seen.convert("RGBA" if mode == "PA" else "RGB"))
        assert "palette" in image.notes[0]
    elif mode.startswith("1-"):
        depth = int(mode[2])
        levels = pixels[:8, :13] >> (8 - depth)
        bits = np.unpackbits(levels[..., np.newaxis], axis=2)[..., 8 - depth :].reshape(8, -1)
        packed = np.packbits(bits, axis=1)
        rows = np.column_stack([np.zeros(8, np.uint8), packed]).tobytes()
        image = read_bytes(png(13, 8, rows, depth=depth), tmp_path)
        expected = levels * np.uint8(255 // (2**depth - 1))
        assert "8-bit grey" in image.notes[0]
    elif mode == "interlaced":
        parts = [pixels[0::8, 0::8], pixels[0::8, 4::8], pixels[4::8, 0::4], pixels[0::4, 2::4]]
        parts += [pixels[2::4, 0::2], pixels[0::2, 1::2], pixels[1::2, :]]
        rows = b"".join(np.pad(part, ((0, 0), (1, 0))).tobytes() for part in parts)
        content = png(21, 19, rows, lacing=1)
        image, expected = read_bytes(content, tmp_path), pixels
        with Image.open(io.BytesIO(content)) as seen:
            np.testing.assert_array_equal(np.array(seen), pixels)
    else:
        key = int(pixels[3, 4])
        content = saved(pixels, "PNG", transparency=key)
        image = read_bytes(content, tmp_path)
        expected = np.dstack([pixels, np.where(pixels == key, 0, 255).astype(np.uint8)])
        assert "alpha" in image.notes[0]
    np.testing.assert_array_equal(image.page(0), expected)
    np.testing.assert_array_equal(rewrite(image, tmp_path)[0].page(0), expected)


@pytest.mark.parametrize("shape", [(5000, 1), (2000, 3), (1, 5000), (600, 1, 3), (1, 1)])
def test_png_of_narrow_images_is_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    pixels = values(shape, "uint8")
    Image.fromarray(pixels).save(tmp_path / "a.png")
    again, _ = rewrite(read_image(tmp_path / "a.png"), tmp_path)
    np.testing.assert_array_equal(again.page(0).squeeze(), pixels.squeeze())


def test_png_keeps_valid_metadata_and_drops_the_rest(tmp_path: Path) -> None:
    text, unsafe = chunk(b"tEXt", b"Title\0dunes"), chunk(b"abCD", b"unknown, unsafe to copy")
    gamma, colour = (
        chunk(b"gAMA", struct.pack(">I", 45455)),
        chunk(b"iCCP", b"p\0\0" + zlib.compress(profile())),
    )
    content = png(4, 1, b"\0abcd", before=gamma + colour + text + unsafe)
    image, path = rewrite(read_bytes(content, tmp_path), tmp_path)
    assert [name for name, _ in image.carried] == [b"gAMA", b"iCCP", b"tEXt"]
    assert image.metadata.icc == profile()
    with Image.open(path) as seen:
        assert seen.info["Title"] == "dunes" and seen.info["icc_profile"] == profile()


@pytest.mark.parametrize(
    ("given", "format"),
    [*((kind, "same") for kind in ("PNG", "JPEG", "TIFF")), ("JPEG", "png"), ("TIFF", "png"),
     ("PNG", "tiff"), ("JPEG", "tiff")],
)  # fmt: skip
def test_exif_orientation_and_profile_go_with_the_pixels(
    given: str, format: str, tmp_path: Path
) -> None:
    exif = b"Exif\0\0" * (given == "JPEG") + exif_with_orientation(6)
    image = read_bytes(saved(texture(16, 24, 3), given, exif=exif, icc_profile=profile()), tmp_path)
    assert image.metadata.orientation == 6 and image.pages[0].shape == (16, 24, 3)
    second, path = rewrite(image, tmp_path, format=format)
    assert second.format == (given.lower() if format == "same" else format)
    assert (second.metadata.orientation, second.metadata.icc) == (6, profile())
    if given != "JPEG" or format != "same":
        np.testing.assert_array_equal(second.page(0), image.page(0))
    with Image.open(path) as seen:
        assert seen.getexif()[274] == 6 and seen.getexif()[271] == "Maker"
        assert seen.getexif().get_ifd(34665)[33434] == pytest.approx(0.004)
        assert seen.info["icc_profile"] == profile()


def jpegs_with_a_density(folder: Path) -> dict[str, Path]:
    """Write JPEG files that state 300 pixels per inch as scanners and cameras do."""
    picture = Image.fromarray(texture(32, 40, 3))
    exif = Image.Exif()
    exif[0x011A], exif[0x011B], exif[0x0128] = 300.0, 300.0, 2
    made = {}
    for name, options in (("jfif", {"dpi": (300, 300)}), ("exif", {"exif": exif})):
        for several in (False, True):
            buffer = io.BytesIO()
            kind = "MPO" if several else "JPEG"
            more = {"save_all": True, "append_images": [picture]} if several else {}
            picture.save(buffer, kind, **options, **more)
            made[f"{name} {kind}"] = buffer.getvalue()
    for kind in ("JPEG", "MPO"):
        # Cameras write Exif without a JFIF header.
        exif_bytes = made[f"exif {kind}"]
        assert exif_bytes[2:4] == b"\xff\xe0"
        made[f"exif alone {kind}"] = exif_bytes[:2] + exif_bytes[20:]
        jfif = made[f"jfif {kind}"]
        thumb = b"\xff\xe0\0\x13" + jfif[6:18] + b"\1\1\5\5\5"
        made[f"thumbnail {kind}"] = jfif[:2] + thumb + jfif[20:]
    for what, data in made.items():
        (folder / f"{what}.jpg").write_bytes(data)
    return {what: folder / f"{what}.jpg" for what in made}


def test_the_density_of_a_jpeg_is_kept(tmp_path: Path) -> None:
    for what, path in jpegs_with_a_density(tmp_path).items():
        _, written = rewrite(read_image(path), tmp_path)
        with Image.open(path) as before, Image.open(written) as after:
            assert before.info["dpi"] == after.info["dpi"] == (300, 300), what
            for key in ("jfif_unit", "jfif_density"):
                assert before.info.get(key) == after.info.get(key), what


@pytest.mark.parametrize("format", ["png", "tiff"])
def test_the_density_goes_with_an_image_into_another_format(format: str, tmp_path: Path) -> None:
    made = jpegs_with_a_density(tmp_path)
    made = {what: path for what, path in made.items() if not what.startswith("exif")}
    made["png"] = tmp_path / "a.png"
    Image.fromarray(texture(32, 40, 3)).save(made["png"], dpi=(300, 300))
    for what, path in made.items():
        _, written = rewrite(read_image(path), tmp_path, format=format)
        with Image.open(written) as after:
            assert after.format == format.upper()
            assert after.info["dpi"] == pytest.approx((300, 300), rel=1e-4), what


def test_an_absurd_density_is_harmless(tmp_path: Path) -> None:
    content = png(4, 2, bytes(10), before=chunk(b"pHYs", b"\xff" * 8 + b"\1"))
    image = read_bytes(content, tmp_path)
    after, _ = rewrite(image, tmp_path, format="tiff")
    np.testing.assert_array_equal(after.page(0), image.page(0))


def test_jpeg_is_written_at_quality_95_with_full_chroma(tmp_path: Path) -> None:
    x = np.linspace(0, 255, 64)
    smooth = np.dstack(np.broadcast_arrays(x, x[:, np.newaxis], 255 - x)).astype(np.uint8)
    image = read_bytes(saved(smooth, "JPEG", quality=95, subsampling=0, dpi=(300, 300)), tmp_path)
    _, path = rewrite(image, tmp_path)
    with Image.open(path) as seen, Image.open(tmp_path / "in") as given:
        assert [component[1:3] for component in seen.layer] == [(1, 1)] * 3
        assert seen.quantization == given.quantization and seen.info["dpi"] == (300, 300)
        assert np.abs(np.array(seen).astype(int) - smooth).max() <= 6


@pytest.mark.parametrize("options", [{"progressive": True}, {"restart_marker_rows": 1}, {}])
def test_jpeg_is_decoded_as_pillow_does(options: dict[str, object], tmp_path: Path) -> None:
    content = saved(texture(33, 47, 3), "JPEG", exif=exif_with_orientation(3), **options)
    with Image.open(io.BytesIO(content)) as seen:
        np.testing.assert_array_equal(read_bytes(content, tmp_path).page(0), np.array(seen))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("dtype", [*"u1 u2 u4 i1 i2 i4 f2 f4 f8".split()])
def test_tiff_is_read_and_written_as_tifffile_does(
    dtype: str, big: bool, order: str, tmp_path: Path
) -> None:
    for channels, packing, tile in (
        (1, None, None),
        (3, "zlib", None),
        (4, "zlib", (16, 16)),
        (3, "lzma", (16, 32)),
        (1, "zlib", (32, 16)),
    ):
        pixels = values(SHAPES[channels], dtype)
        content = tiff(
            pixels,
            compression=packing,
            predictor=packing is not None,
            tile=tile,
            rowsperstrip=None if tile else 7,
            byteorder=order,
            bigtiff=big,
            photometric="rgb" if channels > 1 else "minisblack",
            extrasamples=["assocalpha"] if channels == 4 else None,
        )
        image = read_bytes(content, tmp_path)
        np.testing.assert_array_equal(image.page(0), pixels)
        assert image.page(0).dtype == pixels.dtype
        _, path = rewrite(image, tmp_path)
        with tifffile.TiffFile(path) as seen:
            np.testing.assert_array_equal(seen.asarray(), pixels)
            assert seen.pages[0].dtype == pixels.dtype
            assert (seen.byteorder, seen.is_bigtiff) == (order, big)
            assert (seen.pages[0].compression == 1) == (packing is None)


@pytest.mark.parametrize("packing", ["tiff_lzw", "packbits"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_tiff_packed_by_libtiff_is_unpacked(packing: str, dtype: str, tmp_path: Path) -> None:
    pixels = values((300, 211), dtype)
    # Long runs fill LZW tables up to the last code.
    pixels[100:250] = (np.arange(211) // 50).astype(dtype)
    image = read_bytes(saved(pixels, "TIFF", compression=packing), tmp_path)
    np.testing.assert_array_equal(image.page(0), pixels)
    _, path = rewrite(image, tmp_path)
    with tifffile.TiffFile(path) as seen:
        # The compression is kept, and libtiff reads the pixels that were written.
        assert seen.pages[0].compression == {"tiff_lzw": 5, "packbits": 32773}[packing]
    with Image.open(path) as opened:
        np.testing.assert_array_equal(np.asarray(opened), pixels)


def test_tiff_planes_are_put_together_and_kept_apart(tmp_path: Path) -> None:
    planes = values((3, 23, 31), "uint16")
    content = tiff(planes, photometric="rgb", planarconfig="separate", compression="zlib")
    image = read_bytes(content, tmp_path)
    np.testing.assert_array_equal(image.page(0), np.moveaxis(planes, 0, -1))
    _, path = rewrite(image, tmp_path)
    np.testing.assert_array_equal(tifffile.imread(path), planes)


def test_tiff_pages_are_written_one_by_one_with_their_tags(tmp_path: Path) -> None:
    shapes = [(9, 13), (11, 8, 3), (20, 20)]
    pages = [values(shape, dtype) for shape, dtype in zip(shapes, ["u1", "u2", "f4"], strict=True)]
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer) as writer:
        for number, page in enumerate(pages):
            writer.write(
                page,
                photometric="rgb" if page.ndim == 3 else "minisblack",
                description=f"page {number}",
                metadata=None,
                extratags=[(274, 3, 1, number + 1), (65000, 1, 5, bytes(range(5)))],
            )
    image = read_bytes(buffer.getvalue(), tmp_path)
    assert [page.shape for page in image.pages] == shapes
    second, path = rewrite(image, tmp_path)
    assert second.directories[2].tags[65000].data == bytes(range(5))
    with tifffile.TiffFile(path) as seen:
        for number, page in enumerate(pages):
            np.testing.assert_array_equal(seen.pages[number].asarray(), page)
            assert seen.pages[number].description == f"page {number}"
            assert seen.pages[number].tags[274].value == number + 1


def test_a_fault_names_the_file_and_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page 1.tif"
    with tifffile.TiffWriter(path) as file:
        for dtype in ("u1", "u8"):
            file.write(np.zeros((9, 9), dtype))
    with pytest.raises(InputError, match=r"^page 1\.tif, page 2: holds unsigned values of 64 bits"):
        read_image(path, label=path.name)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"^page 1\.tif: the file is empty"):
        read_image(path, label=path.name)
    path.unlink()
    with pytest.raises(InputError, match=r"^page 1\.tif: no such file"):
        read_image(path, label=path.name)


def test_pixels_that_a_format_cannot_hold_are_rejected(tmp_path: Path) -> None:
    floats = read_bytes(tiff(values((4, 5), "float32")), tmp_path, "floats")
    pages = read_bytes(tiff(values((2, 4, 5), "uint8"), photometric="minisblack"), tmp_path, "two")
    for image, words in ((floats, "floats"), (pages, "2 pages")):
        with pytest.raises(ConfigError, match=words):
            rewrite(image, tmp_path, format="png")
    with pytest.raises(ConfigError, match="give one of"):
        rewrite(floats, tmp_path, format="gif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["floats", "two"]


def test_pixels_of_another_shape_or_type_are_not_written(tmp_path: Path) -> None:
    image = read_bytes(saved(texture(4, 5), "PNG"), tmp_path)
    for pixels in (texture(5, 4), texture(4, 5).astype(np.uint16)):
        with pytest.raises(ValueError, match="was given pixels"):
            encode_image(io.BytesIO(), pixels, image)
    with pytest.raises(ValueError, match="longer"):
        encode_image(io.BytesIO(), [], image)


def test_an_imagej_stack_outside_the_structure_is_refused(tmp_path: Path) -> None:
    content = tiff(texture(4, 5), description="ImageJ=1.53\nimages=7\n", metadata=None)
    with pytest.raises(InputError, match="ImageJ stack"):
        read_bytes(content, tmp_path)


def test_warnings_of_pillow_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    logging.getLogger("PIL.TiffImagePlugin").error("More samples per pixel than can be decoded")
    assert capsys.readouterr().err == ""
