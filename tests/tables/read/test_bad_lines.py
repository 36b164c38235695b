"""Skipped lines are exactly the damaged ones, reported with their numbers."""

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read import delimited
from kpca_apps.tables.table import PartedTable
from tests.tables.whole_and_parts import put

GOOD = [f'{n},"a, {n}",x{n % 7}'.encode() for n in range(200)]
BAD = {
    b"1,2": "has 2 cells where line 1 has 3",
    b"1,2,3,4": "has 4 cells where line 1 has 3",
    b"alone": "has 1 cell where line 1 has 3",
    b"1,\xff\xfe,3": "is not UTF-8 text",
    b"1,\0,3": "holds a zero byte",
    # If another quote follows soon, it closes the open quote of this line.
    b'1,"open,3': "(opens a quote that is never closed|has text after a closing quote)",
    b'1,"a"b,3': "has text after a closing quote",
}
PLACES = st.dictionaries(st.integers(0, 199), st.sampled_from(sorted(BAD)), max_size=30)


def damaged(places: dict[int, bytes]) -> tuple[bytes, list[int]]:
    """Return a table with some bad lines, and the line numbers of the good ones."""
    lines = [places.get(n, line) for n, line in enumerate(GOOD)]
    return b"\n".join([b"id,what,kind", *lines, b""]), [
        n + 2 for n in range(200) if n not in places
    ]


@pytest.mark.release
@given(places=PLACES, block=st.sampled_from([64, 500, 1 << 20]))
@settings(max_examples=60, deadline=None)
def test_exactly_the_bad_lines_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, places: dict[int, bytes], block: int
) -> None:
    text, good = damaged(places)
    path = tmp_path_factory.mktemp("bad") / "t.csv"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kpca_apps.tables.input_file.CHUNK", block)
        table = read_table(path, bad_lines="skip", encoding="utf-8")
        parted = open_table(
            path, bad_lines="skip", encoding="utf-8", in_memory_rows=0, part_rows=16
        )
    assert table.lines is not None and table.lines.tolist() == good
    assert table.frame["id"].to_list() == [str(n - 2) for n in good]
    assert isinstance(parted, PartedTable) and parted.source.notes == table.source.notes
    parts = [part.read().lines for part in parted.parts]
    assert [line for part in parts if part is not None for line in part] == good
    if not places:
        assert table.source.notes == ()
        return
    (note,) = table.source.notes
    assert note.startswith(f"{len(places)} bad line")
    for place in sorted(places)[:10]:
        assert re.search(f"line {place + 2} {BAD[places[place]]}", note)
    assert note.count("; line ") == min(10, len(places)) - 1


def test_without_it_the_error_names_line_and_option(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for bad in (b"1,2", b"1,2,3,4", b'1,"a"b,3', b'1,"open,3'):
        path.write_bytes(damaged({50: bad})[0])
        with pytest.raises(InputError, match=r"line 52 .*--bad-lines skip\.$"):
            read_table(path)


def test_a_footer_names_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", damaged({})[0] + b"\nTotal,200\nSource: us\n")
    with pytest.raises(InputError, match=r"line 203 has 2 cells.*--bad-lines skip"):
        read_table(path)
    table = read_table(path, bad_lines="skip")
    assert table.frame.height == 200 and "line 203 has 2 cells" in table.source.notes[1]
    assert "line 204 (footer)" in table.source.notes[0]


@pytest.mark.parametrize("header", [b"id,\xff,kind", b"id,\0,kind", b'id,"a"b,kind'])
def test_a_bad_header_is_not_left_out(tmp_path: Path, header: bytes) -> None:
    """If a bad header were left out, the first row of data would name the columns."""
    path = put(tmp_path / "t.csv", b"\n".join([header, *GOOD]))
    with pytest.raises(InputError, match=r"line 1 should name the columns and .*--skip-rows"):
        read_table(path, bad_lines="skip", encoding="utf-8")


def test_more_bad_lines_than_rows_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", damaged(dict.fromkeys(range(100), b"a,b"))[0])
    assert read_table(path, bad_lines="skip").frame.height == 100
    for n_bad in (101, 200):
        path.write_bytes(damaged(dict.fromkeys(range(n_bad), b"a,b"))[0])
        message = f"{n_bad} bad lines beside {200 - n_bad} rows .*line 2 "
        with pytest.raises(InputError, match=message):
            read_table(path, bad_lines="skip")


def test_an_open_quote_costs_only_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open quote would otherwise swallow the file up to the search limit."""
    monkeypatch.setattr(delimited, "_WAIT", 1000)
    monkeypatch.setattr("kpca_apps.tables.input_file.CHUNK", 300)
    path = tmp_path / "t.csv"
    plain = [line.replace(b'"', b"").replace(b", ", b" ") for line in GOOD]
    for place in (0, 100, 199):
        lines = [*plain[:place], b'1,"open,3', *plain[place + 1 :]]
        path.write_bytes(b"\n".join([b"id,what,kind", *lines, b""]))
        table = read_table(path, bad_lines="skip")
        assert table.frame.height == 199
        assert f"line {place + 2} opens a quote" in table.source.notes[0]


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".txt"])
@pytest.mark.parametrize("keep", [1e9, 0])
def test_broken_records_are_left_out(tmp_path: Path, suffix: str, keep: float) -> None:
    bad = {
        3: (b'{"a": ', "not JSON"),
        4: (b"[1]", "is not a JSON object"),
        7: (b'{"a": 1, "a": 2}', "a key occurs twice"),
        9: (b'{"a": 1, "b": "\xff"}', "is not UTF-8 text"),
    }
    random.seed(0)
    lines = [
        json.dumps({"a": n, "b": "é" * (n % 3)}, ensure_ascii=False).encode() for n in range(20)
    ]
    for number, (record, _) in bad.items():
        lines[number - 1] = record
    path = put(tmp_path / f"t{suffix}", b"\n".join(lines))
    table = open_table(path, bad_lines="skip", encoding="utf-8", in_memory_rows=keep, part_rows=8)
    tables = [part.read() for part in table.parts] if isinstance(table, PartedTable) else [table]
    assert [n for t in tables if t.lines is not None for n in t.lines] == [
        n for n in range(1, 21) if n not in bad
    ]
    assert [a for t in tables for a in t.frame["a"]] == [
        n - 1 for n in range(1, 21) if n not in bad
    ]
    (note,) = table.source.notes
    assert note.startswith("4 bad lines were left out: ")
    for number, (_, cause) in bad.items():
        assert re.search(f"line {number} [^;]*{cause}", note)
    path.write_bytes(b"\n".join(lines).replace(b"\xff", b""))
    with pytest.raises(InputError, match="line 3"):
        read_table(path)
