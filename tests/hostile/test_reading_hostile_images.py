"""Hostile image files are refused in one line that says what to do."""

from pathlib import Path

import pytest

from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from tests.hostile.images import refused_images

REFUSED = refused_images()


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
