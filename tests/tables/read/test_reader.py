"""A new format needs one file and one line in `opening.py`; here, fixed-width text."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.tables import opening
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read.reader import Reader, table_of
from kpca_apps.tables.read.text import Text
from kpca_apps.tables.table import PartedTable, Rows, Table

WIDTH = 6


def cells(line: str) -> list[str]:
    return [line[start : start + WIDTH].strip() for start in range(0, len(line), WIDTH)]


def read_fixed_width(text: Text) -> Table | PartedTable:
    header, *lines = b"".join(text.chunks()).decode().splitlines()
    names = cells(header)

    def pieces() -> Iterator[pa.Table]:
        for number, line in enumerate(lines, 2):
            columns = [pa.array([cell]) for cell in cells(line)]
            yield pa.Table.from_arrays([*columns, pa.array([number])], [*names, "line"])

    return table_of(text, Rows(pieces(), names, ["Cut by width."], True), format="fixed")


FIXED = Reader(
    "text of fixed width", "encoding", read_fixed_width, lambda text: text.file.suffix == ".fwf"
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(opening, "TEXTS", [FIXED, *opening.TEXTS])
    file = tmp_path / "towns.fwf"
    file.write_bytes("size  town  \n 1.5  Köln  \n20    Ulm   \n".encode("cp1252"))
    return file


def test_a_reader_that_is_listed_reads_what_it_knows(path: Path) -> None:
    table = read_table(path)
    assert table.frame.rows() == [("1.5", "Köln"), ("20", "Ulm")]
    assert table.lines is not None and table.lines.tolist() == [2, 3]
    source = table.source
    assert (source.format, source.encoding, source.n_rows) == ("fixed", "cp1252", 2)
    assert source.notes[0].startswith("Read as cp1252") and source.notes[1:] == ("Cut by width.",)
    parted = open_table(path, in_memory_rows=1, part_rows=1)
    assert isinstance(parted, PartedTable)
    assert parted.source == source and parted.parts[1].read().frame.rows() == [("20", "Ulm")]


def test_options_that_its_reader_does_not_have_are_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="--delimiter does not apply to text of fixed width"):
        read_table(path, delimiter=";")


def test_what_no_reader_knows_is_read_as_before(path: Path) -> None:
    other = path.with_suffix(".csv")
    other.write_bytes(b"a,b\n1,2\n")
    assert read_table(other).source.format == "csv"
    other.write_bytes(b"%PDF-1.4")
    with pytest.raises(InputError, match="this is a PDF"):
        read_table(other)
