"""A batch record survives an interruption at any byte and ignores foreign entries."""

from pathlib import Path

import pytest

from kpca_apps.denoise.batch.manifest import MANIFEST, Manifest
from kpca_apps.errors import InputError, RefusedError


def record(name: str, key: str = "k") -> dict[str, str]:
    return {"output": name, "key": key, "sha256": "h"}


@pytest.fixture
def written(tmp_path: Path) -> bytes:
    with Manifest(tmp_path) as manifest:
        manifest.add(record("a.png"))
        manifest.add(record("b\u00e9\n.png"))
    return (tmp_path / MANIFEST).read_bytes()


def test_a_record_cut_at_any_byte_keeps_every_complete_line(written: bytes, tmp_path: Path) -> None:
    names = ("a.png", "b\u00e9\n.png")
    ends = [at + 1 for at, byte in enumerate(written) if byte == ord("\n")]
    assert len(ends) == 3
    for cut in range(len(written) + 1):
        (tmp_path / MANIFEST).write_bytes(written[:cut])
        with Manifest(tmp_path) as manifest:
            known = [bool(manifest.records(name)) for name in names]
            assert known == [cut >= ends[1], cut >= ends[2]]
            manifest.add(record("c.png"))
        with Manifest(tmp_path) as manifest:
            assert [bool(manifest.records(name)) for name in (*names, "c.png")] == [*known, True]


def test_a_damaged_line_costs_that_line_alone(written: bytes, tmp_path: Path) -> None:
    lines = written.splitlines(keepends=True)
    deep = b"[" * 100_000 + b"\n"
    for broken in (b"\xff\xfe{\n", b"[1, 2]\n", b'{"key": 3}\n', b"null\n", deep):
        (tmp_path / MANIFEST).write_bytes(b"".join([lines[0], broken, lines[2]]))
        with Manifest(tmp_path) as manifest:
            assert manifest.records("a.png") == [] and len(manifest.records("b\u00e9\n.png")) == 1


def test_a_final_record_is_in_order_of_names(tmp_path: Path) -> None:
    orders = [["b", "a"], ["a", "b", "a"]]
    written = []
    for order in orders:
        with Manifest(tmp_path) as manifest:
            manifest.add(record("a", "earlier settings"))
            manifest.add(record("of another batch", "other"))
            for name in order:
                manifest.add(record(name))
            manifest.settle({"a": "k", "b": "k"})
        written.append((tmp_path / MANIFEST).read_bytes())
        with Manifest(tmp_path) as manifest:
            assert [record["key"] for record in manifest.records("a")] == ["k"]
            assert [record["key"] for record in manifest.records("of another batch")] == ["other"]
        (tmp_path / MANIFEST).unlink()
    assert written[0] == written[1]


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("my own notes\n")
    with pytest.raises(RefusedError, match="is not the record"), Manifest(tmp_path):
        pass
    assert (tmp_path / MANIFEST).read_text() == "my own notes\n"
    (tmp_path / MANIFEST).unlink()
    (tmp_path / MANIFEST).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="not a plain file"), Manifest(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), Manifest(tmp_path / "no"):
        pass
