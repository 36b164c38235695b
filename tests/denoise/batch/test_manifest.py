"""The records of a batch survive an interruption at any byte, and ignore foreign entries."""

from pathlib import Path

import pytest

from kpca_apps.denoise.batch.manifest import MANIFEST, Manifest, only_batch, record_file
from kpca_apps.errors import InputError, RefusedError

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
        manifest = Manifest(joined(record("a", "earlier settings"), record("c", "other")), (), "it")
        for name in order:
            manifest.add(record(name))
        written.append(manifest.joined({"a": "k", "b": "k"}))
    again = Manifest(written[0], (), "it")
    assert [one["key"] for name in "abc" for one in again.records(name)] == ["k", "k", "other"]
    assert written[0] == written[1]


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
