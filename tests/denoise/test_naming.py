"""Which files a batch takes, and what it calls their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpca_apps.denoise.naming import find_images, plan_outputs
from kpca_apps.errors import InputError, RefusedError
from tests.denoise.toy import picture, save


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.png", "x/b.png", "x/c.tif", "y/b.png"):
        save(tmp_path / "in", name, picture(0))
    (tmp_path / "in" / "x" / "notes.txt").write_text("no image")
    return tmp_path


def names(tree: Path, *inputs: str, **options: str) -> dict[str, str]:
    planned, _ = plan_outputs([tree / one for one in inputs], tree / "out", **options)
    return {image.name: image.output for image in planned}


def test_folders_are_mirrored(tree: Path) -> None:
    assert list(names(tree, "in")) == ["a.png", "x/b.png", "x/c.tif", "y/b.png"]
    assert list(names(tree, "in/x", "in/y")) == ["x/b.png", "x/c.tif", "y/b.png"]


def test_patterns_are_mirrored_from_their_first_wildcard(tree: Path) -> None:
    assert list(names(tree, "in/*/b.png")) == ["x/b.png", "y/b.png"]
    assert list(names(tree, "in/**/*.png")) == ["a.png", "x/b.png", "y/b.png"]
    assert list(names(tree, "in/x/[bc].*")) == ["b.png", "c.tif"]
    with pytest.raises(InputError, match="no file matches"):
        names(tree, "in/*.gif")


def test_relative_patterns(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "in")
    planned, _ = plan_outputs(["*.png", "*/c.tif"], "../out")
    assert [image.name for image in planned] == ["a.png", "x/c.tif"]


def test_each_file_is_taken_once(tree: Path) -> None:
    assert list(names(tree, "in/a.png", "in/*.png")) == ["a.png"]


def test_two_files_of_one_name_are_refused(tree: Path) -> None:
    with pytest.raises(RefusedError, match=r"b\.png: two inputs have this name"):
        names(tree, "in/x/b.png", "in/y/b.png")


def test_hidden_files_and_linked_folders_are_passed_over(tree: Path) -> None:
    save(tree / "in", ".hidden.png", picture(0))
    save(tree / "in", ".cache/d.png", picture(0))
    (tree / "in" / "loop").symlink_to(tree / "in")
    assert list(names(tree, "in")) == ["a.png", "x/b.png", "x/c.tif", "y/b.png"]


def test_content_tells_an_image_without_a_suffix(tree: Path) -> None:
    save(tree / "in", "photo", picture(0), format="PNG")
    found, notes = find_images([tree / "in"])
    assert "photo" in dict(found)
    assert notes == ("1 file is no image and was passed over.",)


def test_what_is_no_image_is_taken_when_named(tree: Path) -> None:
    assert list(names(tree, "in/x/notes.txt")) == ["notes.txt"]


def test_nothing_to_do_is_said(tree: Path) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(InputError, match="no image there"):
        names(tree, "empty")
    with pytest.raises(InputError, match="no such file"):
        names(tree, "none.png")


def test_another_format_changes_suffixes_without_a_clash(tree: Path) -> None:
    for name in ("a.jpg", "a.JPEG", "x/c.tiff"):
        save(tree / "in", name, picture(0))
    assert names(tree, "in", format="png") == {
        "a.png": "a.png",
        "a.jpg": "a.jpg.png",
        "a.JPEG": "a.JPEG.png",
        "x/b.png": "x/b.png",
        "x/c.tif": "x/c.tif.png",
        "x/c.tiff": "x/c.tiff.png",
        "y/b.png": "y/b.png",
    }
    assert names(tree, "in/x", format="tiff")["c.tif"] == "c.tif"


def test_a_clash_that_cannot_be_avoided_is_refused(tree: Path) -> None:
    for name in ("p.png", "p.jpg", "p.jpg.png"):
        save(tree / "in", name, picture(0))
    with pytest.raises(RefusedError, match="same name"):
        names(tree, "in", format="png")
