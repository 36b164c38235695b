"""Hostile image files are refused in one line that says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from tests.hostile.images import refused_images, saved, texture, tiff

REFUSED = refused_images()
GOOD = {
    "a.png": saved(texture(9, 13, 3), "PNG"),
    "a.jpg": saved(texture(16, 24, 3), "JPEG"),
    "a.tif": tiff(texture(9, 13), compression="zlib", predictor=True),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_in_one_line(what: str, tmp_path: Path) -> None:
    name, content, words = REFUSED[what]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_image(path).page(0)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message
    assert ";" in message or "give" in message


def test_missing_folder_and_device_are_refused(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "no.png", "no such"), (tmp_path, "folder")):
        with pytest.raises(InputError, match=words):
            read_image(path)
    with pytest.raises(InputError, match="regular file"):
        read_image("/dev/null")


@pytest.mark.parametrize("name", GOOD)
@given(data=st.data())
def test_a_damaged_byte_or_cut_is_read_or_refused(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(GOOD[name])
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] = data.draw(st.integers(0, 255))
    else:
        del content[place:]
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(content)
    try:
        image = read_image(path)
        pixels = image.page(0)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert pixels.shape == image.pages[0].shape
        assert pixels.dtype in (np.uint8, np.uint16, np.float32, np.float64)
