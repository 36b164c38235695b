"""A kind of image file is recognised, read and written by its `Format` alone."""

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from numpy.typing import NDArray

from kpca_apps.images import kinds
from kpca_apps.images.files import read_image
from kpca_apps.images.types import Format, ImageFile, Page
from tests.hostile.images import texture, write_image


def read(data: bytes) -> ImageFile:
    pixels = np.frombuffer(data[6:], np.uint8).reshape(data[4], data[5])
    return ImageFile("tiles", (Page(*pixels.shape, 1, pixels.dtype),), lambda number: pixels)


def write(file: IO[bytes], pages: Iterable[NDArray[np.uint8]], like: ImageFile) -> None:
    (pixels,) = pages
    file.write(b"TILE" + bytes(pixels.shape) + pixels.tobytes())


def test_another_kind_is_one_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = Format(rb"TILE", (".tiles",), read, write, size=lambda head: (head[4], head[5]))
    monkeypatch.setitem(kinds.FORMATS, "tiles", tiles)
    pixels, path = texture(5, 7), tmp_path / "a"
    path.write_bytes(b"TILE" + bytes((5, 7)) + pixels.tobytes())
    image = read_image(path)
    assert (image.format, kinds.refusal("tiles")) == ("tiles", "")
    write_image(tmp_path / "again", image.page(0), image)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    write_image(tmp_path / "a.png", image.page(0), image, format="png")
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").page(0), pixels)
