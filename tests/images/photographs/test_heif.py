"""AVIF is kept losslessly with metadata, HEIC is written as TIFF; both checked with Pillow."""

import io
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageCms

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.files import read_image
from tests.hostile.images import saved, texture, write_image
from tests.quick import quick

GREY, COLOUR, ALPHA = texture(20, 30), texture(20, 30, 3), texture(20, 30, 4)


def exif_of(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[274], exif[271] = orientation, "Maker"
    return exif.tobytes()


def rewrite(content: bytes, folder: Path) -> tuple[np.ndarray, Path]:
    path, out = folder / "a.avif", folder / "b.avif"
    path.write_bytes(content)
    image = read_image(path)
    assert (image.format, len(image.pages)) == ("avif", 1)
    write_image(out, image.page(0), image)
    np.testing.assert_array_equal(read_image(out).page(0), image.page(0))
    return image.page(0), out


@pytest.mark.parametrize("pixels", [GREY, COLOUR, ALPHA], ids=["grey", "colour", "alpha"])
@pytest.mark.parametrize("bits", [8, 10, 12])
def test_avif_without_loss(pixels: np.ndarray, bits: int, tmp_path: Path) -> None:
    deep = pixels if bits == 8 else pixels.astype("u2") << (bits - 8)
    content = bytes(imagecodecs.avif_encode(deep, level=100, bitspersample=bits))
    found, out = rewrite(content, tmp_path)
    np.testing.assert_array_equal(found, deep)
    if bits == 8:
        with Image.open(out) as seen:
            shown = np.array(seen.convert("L") if pixels.ndim == 2 else seen)
        np.testing.assert_array_equal(shown, pixels)
    # A pixel above the bit depth is clipped, not wrapped.
    image = read_image(out)
    write_image(out, np.full_like(found, np.iinfo(found.dtype).max), image)
    assert read_image(out).page(0).min() == (1 << bits) - 1


@pytest.mark.parametrize("orientation", quick(range(1, 9), 1, 6, 7))
def test_avif_keeps_metadata(orientation: int, tmp_path: Path) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    given = {"exif": exif_of(orientation), "icc_profile": profile, "xmp": b"<x:xmpmeta/>"}
    _, out = rewrite(saved(COLOUR, "AVIF", **given), tmp_path)
    with Image.open(out) as seen:
        assert (seen.info["icc_profile"], seen.info["xmp"]) == (profile, b"<x:xmpmeta/>")
        assert seen.getexif()[271] == "Maker" and seen.getexif().get(274, 1) == orientation
    assert read_image(out).metadata.orientation == orientation


def test_animations_and_bombs_are_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(texture(8, 8, 3)), Image.fromarray(255 - texture(8, 8, 3))]
    film = io.BytesIO()
    frames[0].save(film, "AVIF", save_all=True, append_images=frames[1:])
    content = bytearray(imagecodecs.avif_encode(COLOUR, level=100))
    at = content.index(b"ispe") + 8
    content[at : at + 8] = b"\0\0\xff\xff\0\0\xff\xff"
    for data, words in ((film.getvalue(), "animated"), (bytes(content), "65535 x 65535")):
        path = tmp_path / "a.avif"
        path.write_bytes(data)
        with pytest.raises(InputError, match=words):
            read_image(path)


def test_errors_of_a_damaged_avif_show_no_object(tmp_path: Path) -> None:
    path = tmp_path / "a.avif"
    path.write_bytes(bytes(imagecodecs.avif_encode(COLOUR, level=100))[:600])
    with pytest.raises(InputError, match="pixels are damaged") as refused:
        read_image(path)
    assert "object" not in str(refused.value) and "0x" not in str(refused.value)


def test_avif_with_a_false_bit_depth_is_rejected(tmp_path: Path) -> None:
    content = bytearray(imagecodecs.avif_encode(COLOUR, level=100))
    extra = struct.pack(">I4sBBH", 12, b"av1C", 0x81, 0, 0x6000)  # says 12 bits; no image uses it
    at = content.index(struct.pack(">I", content.index(b"mdat") + 4), content.index(b"iloc"))
    content[at : at + 4] = struct.pack(">I", content.index(b"mdat") + 4 + len(extra))
    content[content.index(b"ipma") - 4 : content.index(b"ipma") - 4] = extra
    for name in (b"ipco", b"iprp", b"meta"):
        at = content.index(name) - 4
        (size,) = struct.unpack_from(">I", content, at)
        struct.pack_into(">I", content, at, size + len(extra))
    path = tmp_path / "a.avif"
    path.write_bytes(content)
    with pytest.raises(InputError, match="another type than of 12 bits"):
        read_image(path)


@pytest.mark.parametrize("bits", [8, 10])
def test_heic_is_written_as_tiff(bits: int, tmp_path: Path) -> None:
    heif = pytest.importorskip("pillow_heif")
    # Use a smooth ramp, as HEIC is lossy.
    ramp = np.add.outer(np.arange(64), np.arange(96))[..., np.newaxis] * np.array([1, 1, 1])
    pixels = ramp.astype("u1") if bits == 8 else (ramp * 256).astype("u2")
    mode = "RGB" if bits == 8 else "RGB;16"
    made = heif.from_bytes(mode, (96, 64), pixels.tobytes())
    path, out = tmp_path / "a.heic", tmp_path / "a.tif"
    made.save(path, quality=95, chroma=444, exif=exif_of(6))
    image = read_image(path)
    assert image.pages[0].shape == (96, 64, 3)  # upright
    write_image(out, image.page(0), image)
    found = tifffile.imread(out)
    assert found.dtype == pixels.dtype
    assert np.abs(found - np.rot90(pixels, -1).astype(float)).mean() < (2 if bits == 8 else 512)
    with tifffile.TiffFile(out) as file:
        assert file.pages[0].tags[271].value == "Maker"


@pytest.mark.parametrize(
    ("name", "module", "head", "extra"),
    [("a.heic", "pillow_heif", b"\0\0\0\x18ftypheic", "heic"),
     ("a.fits", "astropy", b"SIMPLE  =", "lab"),
     ("a.mrc", "mrcfile", bytes(208) + b"MAP ", "lab"),
     ("a.nii", "nibabel", bytes(344) + b"n+1\0", "lab"),
     ("a.nd2", "nd2", b"\xda\xce\xbe\x0a", "lab"),
     ("a.dcm", "pydicom", bytes(128) + b"DICM", "lab")],
)  # fmt: skip
def test_a_missing_library_is_reported_with_its_install_command(
    name: str, module: str, head: bytes, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / name).write_bytes(head.ljust(600, b"\0"))
    with pytest.raises(ConfigError, match=rf'pip install "\.\[{extra}\]"'):
        read_image(tmp_path / name)
