"""Which files a batch accepts, and how it names their results."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from kpca_apps.denoise.batch.inputs import find_images, plan_outputs
from kpca_apps.errors import InputError, RefusedError
from tests.denoise.toy import picture, save


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.png", "x/b.png", "x/c.tif", "y/b.png"):
        save(tmp_path / "in", name, picture(0))
    (tmp_path / "in" / "x" / "notes.txt").write_text("no image")
    return tmp_path


def names(tree: Path, *inputs: str, **options: str) -> dict[str, str]:
    planned, _ = plan_outputs([tree / name for name in inputs], tree / "out", **options)
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


@pytest.mark.parametrize(
    ("group", "array", "content"),
    [(".zgroup", ".zarray", "{}"), ("zarr.json", "zarr.json", '{"node_type": "array"}')],
)
def test_an_array_of_an_image_names_the_image(
    group: str, array: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "vol.ome.zarr"
    (image / "0").mkdir(parents=True)
    (image / group).write_text('{"node_type": "group"}')
    (image / "0" / array).write_text(content)
    with pytest.raises(InputError, match=r"0: this is an array of .*; name .*vol\.ome\.zarr\.$"):
        names(tmp_path, "vol.ome.zarr/0")
    monkeypatch.chdir(image)
    with pytest.raises(InputError, match=r"^0: this is an array of .*; name .*vol\.ome\.zarr\.$"):
        find_images(["0"])
    # In Zarr, a group inside a group may be an image.
    (image / "0" / array).unlink()
    (image / "0" / group).write_text('{"node_type": "group"}')
    assert list(names(tmp_path, "vol.ome.zarr/0")) == ["0"]


def test_packed_files_are_reported_as_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "sky.fits.gz").write_bytes(gzip.compress(b"SIMPLE  =" + bytes(1000)))
    (planned,), _ = plan_outputs([tmp_path / "sky.fits.gz"], tmp_path / "out")
    assert planned.refused == "is packed by gzip, which is not read; unpack it first (gunzip)."
    with pytest.raises(InputError, match="no image there"):
        plan_outputs([tmp_path], tmp_path / "out")


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
    assert "photo" in {entry.name for entry in found}
    assert notes == ("1 file is not an image and was passed over.",)


def test_other_files_are_accepted_when_named(tree: Path) -> None:
    assert list(names(tree, "in/x/notes.txt")) == ["notes.txt"]


def test_an_empty_batch_is_reported(tree: Path) -> None:
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


def test_an_image_with_a_wrong_suffix_is_renamed_and_reported(tree: Path) -> None:
    save(tree / "in", "x/b.jpg", picture(0), format="PNG")
    save(tree / "in", "photo.JPG", picture(0), format="TIFF")
    save(tree / "in", "scan.dat", picture(0), format="PNG")
    save(tree / "in", "real.jpeg", picture(0))
    planned, notes = plan_outputs([tree / "in"], tree / "out")
    outputs = {image.name: image.output for image in planned}
    assert outputs["photo.JPG"] == "photo.tif" and outputs["x/b.jpg"] == "x/b.jpg.png"
    assert [name for name, output in outputs.items() if name != output] == ["photo.JPG", "x/b.jpg"]
    assert '"photo.JPG" is not the kind of image that its name says' in " ".join(notes)
    assert names(tree, "in", format="tiff")["photo.JPG"] == "photo.tif"


def test_unreadable_image_formats_count_as_images(tree: Path) -> None:
    np.save(tree / "in" / "a.npy", np.zeros((4, 4)))
    (tree / "in" / "b.fits").write_bytes(b"SIMPLE  =                    T")
    (tree / "in" / "c").write_bytes(b"SIMPLE  =                    T")
    (tree / "in" / "d.ppm").write_bytes(b"P6\n4 4\n255\n" + bytes(48))
    (tree / "in" / "e").write_bytes(bytes(128) + b"DICM")
    (tree / "in" / "participants.txt").write_bytes(b"P1 23\nP2 41\n")
    found, notes = find_images([tree / "in"])
    assert {"a.npy", "b.fits", "c", "d.ppm", "e"} <= {entry.name for entry in found}
    assert notes == ("2 files are not images and were passed over.",)


def test_a_clash_that_cannot_be_avoided_is_refused(tree: Path) -> None:
    for name in ("p.png", "p.jpg", "p.jpg.png"):
        save(tree / "in", name, picture(0))
    with pytest.raises(RefusedError, match="same name"):
        names(tree, "in", format="png")
