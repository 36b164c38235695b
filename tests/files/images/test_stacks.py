"""Which pages are a stack, against files that tifffile writes."""

from pathlib import Path

import numpy as np
import pytest
import tifffile

from kpca_apps.files.images.front_door import read_image
from kpca_apps.files.images.stacks import page_groups


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
    assert page_groups(read_image(path)) == expected


def test_nothing_is_said_of_plain_pages_or_of_another_number(tmp_path: Path) -> None:
    pixels = np.zeros((3, 9, 8), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="minisblack", metadata=None)
    assert page_groups(read_image(tmp_path / "a.tif")) is None
    for description in (
        "ImageJ=1.5\nimages=3\nslices=4\n",
        '<OME><Pixels DimensionOrder="XYZCT" SizeZ="-3"/>',
    ):
        tifffile.imwrite(
            tmp_path / "b.tif",
            pixels,
            photometric="minisblack",
            metadata=None,
            description=description,
        )
        assert page_groups(read_image(tmp_path / "b.tif")) is None
