"""The meaning of pixels is kept: polarity, transparency, predictors, other metadata."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.photographs.jpeg import read_jpeg
from kpca_apps.images.photographs.png import read_png
from kpca_apps.images.tiff import read_tiff
from tests.hostile.images import encoded, saved, texture, tiff


def rewrite(content: bytes, folder: Path, format: str = "same") -> bytes:
    path = folder / "in"
    path.write_bytes(content)
    return encoded(read_image(path), format=format)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", [*"u1 u2 u4 i1 i2 i4 f2 f4".split()])
def test_tiff_that_counts_from_white_is_shown_alike_and_stored_alike(
    dtype: str, order: str, tmp_path: Path
) -> None:
    """Signed values are not inverted, as they have no white to count from."""
    stored = texture(5, 6).astype(dtype)
    content = tiff(stored, photometric="miniswhite", byteorder=order)
    shown = np.iinfo(dtype).max - stored if dtype[0] == "u" else stored
    np.testing.assert_array_equal(read_tiff(content).page(0), shown)
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(rewrite(content, tmp_path))), stored)
    if dtype in ("u1", "u2"):
        with Image.open(io.BytesIO(rewrite(content, tmp_path, "png"))) as picture:
            np.testing.assert_array_equal(np.array(picture), shown)


def test_tiff_that_counts_from_white_keeps_its_transparency(tmp_path: Path) -> None:
    stored = texture(5, 6, 2)
    content = tiff(
        stored, photometric="miniswhite", extrasamples=["unassalpha"], planarconfig="contig"
    )
    image = read_tiff(content)
    np.testing.assert_array_equal(image.page(0)[..., 1], stored[..., 1])
    np.testing.assert_array_equal(image.page(0)[..., 0], 255 - stored[..., 0])
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(rewrite(content, tmp_path))), stored)


def test_colours_multiplied_by_transparency_are_not_put_into_a_png(tmp_path: Path) -> None:
    content = tiff(texture(5, 6, 4), photometric="rgb", extrasamples=["assocalpha"])
    assert tifffile.imread(io.BytesIO(rewrite(content, tmp_path))).shape == (5, 6, 4)
    with pytest.raises(ConfigError, match="multiplied by their transparency"):
        rewrite(content, tmp_path, "png")


@pytest.mark.parametrize("packing", [None, "packbits"])
def test_an_inapplicable_predictor_is_ignored_as_by_libtiff(packing: str | None) -> None:
    pixels = texture(20, 18)
    content = saved(pixels, "TIFF", compression=packing)
    # Renumber the planar-configuration tag as a predictor tag.
    tag = struct.pack("<HHI", 284, 3, 1)
    assert content.count(tag) == 1
    named = content.replace(tag + struct.pack("<I", 1), struct.pack("<HHII", 317, 3, 1, 2))
    with Image.open(io.BytesIO(named)) as seen:
        np.testing.assert_array_equal(np.array(seen), pixels)
    np.testing.assert_array_equal(read_tiff(named).page(0), pixels)


@pytest.mark.parametrize(
    ("number", "value"), [(50706, b"\1\4\0\0"), (270, "ImageJ=1.53\nimages=5\n")]
)
def test_metadata_of_a_jpeg_do_not_make_a_tiff_raw_or_a_stack(
    number: int, value: bytes | str, tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[number], exif[274] = value, 6
    content = saved(texture(9, 8, 3), "JPEG", exif=exif.tobytes())
    image = read_tiff(rewrite(content, tmp_path, "tiff"))
    assert image.metadata.orientation == 6
    np.testing.assert_array_equal(image.page(0), read_jpeg(content).page(0))


def test_an_empty_profile_is_ignored() -> None:
    content = tiff(texture(5, 6))
    software = content.index(struct.pack("<HH", 305, 2))
    empty = struct.pack("<HHII", 34675, 7, 0, 0)
    image = read_tiff(content[:software] + empty + content[software + 12 :])
    assert 34675 in image.directories[0].tags and image.metadata.icc is None


def test_a_jpeg_of_nothing_but_noise_in_colour_is_written() -> None:
    pixels = np.random.default_rng(0).integers(0, 2, (300, 300, 3)).astype(np.uint8) * 255
    like = read_jpeg(saved(texture(300, 300, 3), "JPEG"))
    error = read_jpeg(encoded(like, pixels)).page(0).astype(int) - pixels
    assert np.sqrt(np.mean(error**2)) < 4


def test_tiff_volumes_are_refused_and_not_cut_to_one_slice() -> None:
    content = tiff(
        texture(16, 32, 32), volumetric=True, tile=(16, 16, 16), photometric="minisblack"
    )
    with pytest.raises(InputError, match="a volume of 16 slices"):
        read_tiff(content)


def test_content_of_a_tiff_beside_its_pages_is_reported_as_dropped() -> None:
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        writer.write(texture(64, 64), subifds=1)
        writer.write(texture(32, 20), subfiletype=1)
    image = read_tiff(file.getvalue())
    assert len(image.pages) == 1 and "not kept" in image.notes[0]
    unknown = tiff(texture(5, 6, 4), photometric="rgb", extrasamples=["unspecified"])
    assert "taken as transparency" in read_tiff(unknown).notes[0]


@settings(max_examples=50)
@given(
    pixels=arrays(
        st.sampled_from([np.uint8, np.uint16]),
        st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.tuples(*[st.integers(3, 4)] * 3),
    ),
    packing=st.sampled_from([None, "zlib"]),
    order=st.sampled_from("<>"),
)
def test_any_pixels_survive_tiff_and_png(
    pixels: np.ndarray, packing: str | None, order: str
) -> None:
    colour = pixels.ndim == 3
    content = tiff(
        pixels,
        compression=packing,
        predictor=packing is not None,
        byteorder=order,
        photometric="rgb" if colour else "minisblack",
        extrasamples=["unassalpha"] if pixels.shape[2:] == (4,) else None,
    )
    like = read_tiff(content)
    np.testing.assert_array_equal(like.page(0), pixels)
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(encoded(like))), pixels)
    as_png = encoded(like, format="png")
    np.testing.assert_array_equal(read_png(as_png).page(0), pixels)
    if pixels.dtype == np.uint8 or not colour:
        with Image.open(io.BytesIO(as_png)) as seen:
            np.testing.assert_array_equal(np.array(seen), pixels)
