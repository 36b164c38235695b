import hashlib
import zipfile
from pathlib import Path

import polars as pl
import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import read_table
from tests.tables.whole_and_parts import read_both_ways

TEXT = "a;b\n1,5;x\n2;y\n"


def archive(path: Path, **members: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "folder/in/t.csv", "../../t.csv", "/t.csv"])
def test_the_only_table_of_an_archive_is_read(name: str, tmp_path: Path) -> None:
    path = archive(
        tmp_path / "t.zip", **{name: TEXT, "__MACOSX/._t.csv": b"\0", ".DS_Store": b"\0"}
    )
    table = read_table(path)
    assert table.frame.rows() == [("1,5", "x"), ("2", "y")]
    assert table.lines is not None and table.lines.tolist() == [2, 3]
    assert any("t.csv" in note for note in table.source.notes)
    # The hash is of the archive on disk, and nothing is unpacked beside it.
    assert table.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["t.zip"]


def test_a_table_in_it_may_be_of_any_kind_and_length(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": range(50), "y": [f"r{i}" for i in range(50)]})
    frame.write_parquet(tmp_path / "t.parquet")
    path = archive(tmp_path / "t.zip", **{"t.parquet": (tmp_path / "t.parquet").read_bytes()})
    assert read_both_ways(path, 20).frame.equals(frame)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"a.csv": TEXT, "b.csv": TEXT}, r"t\.zip: .*a\.csv, b\.csv.*unpack"),
        ({}, r"t\.zip: "),
        ({"a.zip": b"PK\x03\x04"}, r"t\.zip: "),
    ],
)
def test_others_are_refused_in_one_line(
    members: dict[str, str | bytes], words: str, tmp_path: Path
) -> None:
    path = archive(tmp_path / "t.zip", **members)
    with pytest.raises(InputError, match=words) as refused:
        read_table(path)
    assert "\n" not in str(refused.value)
