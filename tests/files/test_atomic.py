"""A file appears whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from kpca_apps.errors import InputError
from kpca_apps.files.atomic import atomic_write


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_an_error_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"before")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_larger_than_the_system_allows_is_one_line(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with (
            pytest.raises(InputError, match=r"file\.txt: cannot be written \(File too large\)"),
            atomic_write(tmp_path / "file.txt") as file,
        ):
            file.write(bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_nothing_shows_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    with atomic_write(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with atomic_write(tmp_path / "file.txt") as file:
        file.write(b"x")
    assert (tmp_path / "file.txt").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("name", ["nowhere/file.txt", ".", "a\0b"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught, atomic_write(f"{tmp_path}/{name}"):
        pass
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []
