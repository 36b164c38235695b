"""The records of a batch survive an interruption at any byte, and ignore foreign entries."""

import os
from pathlib import Path

import pytest

from kpca_apps.denoise.batch.manifest import MANIFEST, RECORDS, Manifest, only_batch, record_file
from kpca_apps.denoise.batch.results import FolderResults
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.system.files.temporary import remove

NAMES = ("a.png", "b\u00e9\n.png")


def record(name: str, key: str = "k") -> dict[str, str]:
    return {"output": name, "key": key, "sha256": "h"}


def joined(*records: dict[str, str]) -> bytes:
    return Manifest(b"", [record_file(one)[1] for one in records], "it").joined({})


def test_records_cut_at_any_byte_keep_every_complete_one() -> None:
    written = joined(*map(record, NAMES))
    ends = [at for at, byte in enumerate(written) if byte == ord("\n")]
    assert len(ends) == 3
    for cut in range(len(written) + 1):
        manifest = Manifest(written[:cut], [record_file(record("c.png"))[1][:cut]], "it")
        assert [bool(manifest.records(name)) for name in NAMES] == [cut >= ends[1], cut >= ends[2]]


def test_a_damaged_line_costs_that_line_alone() -> None:
    lines = joined(*map(record, NAMES)).splitlines(keepends=True)
    deep = b"[" * 100_000 + b"\n"
    for broken in (b"\xff\xfe{\n", b"[1, 2]\n", b'{"key": 3}\n', b"null\n", deep):
        for manifest in (
            Manifest(b"".join([lines[0], broken, lines[2]]), (), "it"),
            Manifest(b"", [broken, lines[2]], "it"),
        ):
            assert [len(manifest.records(name)) for name in NAMES] == [0, 1]


def test_joined_records_are_in_order_of_names_and_current() -> None:
    written = []
    for order in (["b", "a"], ["a", "b", "a"]):
        # A run that was killed after it joined its records left their files.
        other, left = record("c", "other"), [record_file(record("c", "other"))[1]]
        manifest = Manifest(joined(record("a", "earlier settings"), other), left, "it")
        for name in order:
            manifest.add(record(name))
        written.append(manifest.joined({"a": "k", "b": "k"}))
    again = Manifest(written[0], (), "it")
    assert [one["key"] for name in "abc" for one in again.records(name)] == ["k", "k", "other"]
    assert written[0] == written[1]


def test_the_last_of_several_records_with_equal_settings_is_kept(tmp_path: Path) -> None:
    (tmp_path / RECORDS).mkdir()
    (tmp_path / MANIFEST).touch()
    for time in range(8):
        name, content = record_file({**record("a"), "sha256": f"of run {time}"})
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, (time, time))
    FolderResults(tmp_path).settle({"a": "k"})
    (kept,) = Manifest((tmp_path / MANIFEST).read_bytes(), (), "it").records("a")
    assert kept["sha256"] == "of run 7"
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_records_of_the_next_run_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content = record_file(record("a"))

    def begin_and_remove(path: Path) -> None:
        (tmp_path / RECORDS).mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
        remove(path)

    monkeypatch.setattr("kpca_apps.denoise.batch.results.remove", begin_and_remove)
    (tmp_path / RECORDS).mkdir()
    (tmp_path / MANIFEST).touch()
    FolderResults(tmp_path).settle({})
    assert (tmp_path / name).exists()


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="is not the record"):
        Manifest(b"my own notes\n", (), "it")
    (tmp_path / MANIFEST).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="not a plain file"), only_batch(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), only_batch(tmp_path / "no"):
        pass
