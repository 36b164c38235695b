"""Which pages form a stack, for files that tifffile writes."""

from pathlib import Path

import numpy as np
import pytest
import tifffile

from kpca_apps.images.files import read_image
from kpca_apps.images.stacks import page_groups
from tests.hostile.images import write_image


@pytest.mark.parametrize(
    ("axes", "shape", "expected"),
    [
        ("ZYX", (3, 9, 8), ((0, 1, 2),)),
        ("TYX", (3, 9, 8), ((0, 1, 2),)),
        ("ZCYX", (3, 2, 9, 8), ((0, 2, 4), (1, 3, 5))),
        ("TZYX", (2, 3, 9, 8), ((0, 1, 2), (3, 4, 5))),
    ],
)
@pytest.mark.parametrize("kind", ["imagej", "ome"])
def test_axes_of_imagej_and_ome(
    tmp_path: Path, kind: str, axes: str, shape: tuple[int, ...], expected: object
) -> None:
    path = tmp_path / ("a.ome.tif" if kind == "ome" else "a.tif")
    pixels = np.arange(np.prod(shape), dtype=np.uint16).reshape(shape)
    tifffile.imwrite(
        path, pixels, photometric="minisblack", metadata={"axes": axes}, **{kind: True}
    )
    assert page_groups(path, int(np.prod(shape[:-2]))) == expected


def test_plain_pages_and_unnamed_axes_give_no_note(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    for metadata in (None, {}):
        pixels = np.zeros((3, 9, 8), np.uint8)
        tifffile.imwrite(path, pixels, photometric="minisblack", metadata=metadata)
        assert page_groups(path, 3) is None


def test_colour_and_several_images_of_ome(tmp_path: Path) -> None:
    path = tmp_path / "a.ome.tif"
    frames = np.zeros((2, 3, 9, 8, 3), np.uint8)
    tifffile.imwrite(path, frames, ome=True, photometric="rgb", metadata={"axes": "TZYXS"})
    assert page_groups(path, 6) == ((0, 1, 2), (3, 4, 5))
    with tifffile.TiffWriter(path, ome=True) as file:
        for axes, count in (("ZYX", 2), ("TYX", 3)):
            pixels = np.zeros((count, 9, 8), np.uint8)
            file.write(pixels, photometric="minisblack", metadata={"axes": axes})
    assert page_groups(path, 5) == ((0, 1), (2, 3, 4))


OME = (
    '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image>'
    '<Pixels DimensionOrder="{}" Type="uint8" SizeX="8" SizeY="9" SizeZ="{}" SizeC="1" SizeT="1"/>'
    "</Image></OME>"
)


@pytest.mark.parametrize(
    "description",
    [
        "ImageJ=1.5\nimages=4\nslices=4\n",
        OME.format("XYZCT", 2),
        OME.format("CZTXY", 3),
        OME.format("XYZCT", "-3"),
        '<?xml version="1.0"?><OME>' + "<Pixels " * 20_000 + "</OME>",
    ],
)
def test_axes_that_do_not_fit_the_pages_are_no_stack(tmp_path: Path, description: str) -> None:
    path, pixels = tmp_path / "a.tif", np.zeros((3, 9, 8), np.uint8)
    tifffile.imwrite(path, pixels, photometric="minisblack", metadata=None, description=description)
    assert page_groups(path, 3) == ()


@pytest.mark.parametrize("shape", [(5, 7, 9), (3, 8, 10)])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_pixels_of_an_imagej_stack_follow_one_another(
    tmp_path: Path, shape: tuple[int, ...], dtype: str
) -> None:
    """ImageJ reads the pixels in one block and ignores all pages after the first."""
    volume = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", volume, imagej=True, metadata={"axes": "ZYX"})
    target = tmp_path / "b.tif"
    write_image(target, iter(volume), read_image(tmp_path / "a.tif"))
    with tifffile.TiffFile(target) as opened:
        first = opened.pages[0].dataoffsets[0]
        np.testing.assert_array_equal(opened.asarray(), volume)
        assert len(opened.pages) == len(volume) and opened.is_imagej
        kind = np.dtype(dtype).newbyteorder(opened.byteorder)
    stored = np.frombuffer(target.read_bytes(), kind, volume.size, first)
    np.testing.assert_array_equal(stored.reshape(shape), volume)
