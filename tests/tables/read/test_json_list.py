import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.table import Table
from tests.tables.whole_and_parts import read_both_ways

RECORDS: list[dict[str, Any]] = [
    {"a": number, "b": f"x{number}\n]", "c": {"q": [1, None]}} for number in range(5)
]


def write(data: str | bytes, tmp_path: Path, name: str = "table.json") -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def read(data: str | bytes, tmp_path: Path, name: str = "table.json", **options: Any) -> Table:
    return read_table(write(data, tmp_path, name), **options)


@pytest.mark.parametrize("name", ["table.json", "table.txt"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "around", ["{}", '{{"n": 5, "data": {}, "next": null}}', "\ufeff \n{}\n\n"]
)
def test_a_list_is_read_as_its_records_are_as_lines(
    around: str, indent: int | None, name: str, tmp_path: Path
) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    expected = read(lines, tmp_path, "lines.jsonl").frame
    table = read(around.format(json.dumps(RECORDS, indent=indent)), tmp_path, name)
    assert table.frame.equals(expected) and table.source.format == "json"
    assert 'Lists and records read as text: "c".' in table.source.notes


def test_integers_keep_all_digits(tmp_path: Path) -> None:
    rows = [{"a": 2**63 - 1, "b": 2**70 + 1, "c": 2**70 + 1}, {"a": 1, "b": 2, "c": 0.5}]
    table = read(json.dumps(rows), tmp_path)
    assert table.frame.rows() == [(2**63 - 1, str(2**70 + 1), str(2**70 + 1)), (1, "2", "0.5")]


def test_records_on_lines_of_their_own_are_named_by_them(tmp_path: Path) -> None:
    table = read('{"data": [\n{"a": 1}, {"b": 3}\n,\n{"a": 2}]}', tmp_path)
    assert table.lines is None  # two records begin on line 2
    table = read('{"n": 3,\n "data": [\n{"a":\n1},\n{"a": 2}\n,\n{"a": 3}]}', tmp_path)
    assert table.lines is not None and table.lines.tolist() == [3, 5, 7]
    assert table.source.notes == ('Read the list under the key "data"; left out: "n".',)


def test_records_on_one_line_have_no_lines_and_are_named_by_their_order(tmp_path: Path) -> None:
    assert read(json.dumps(RECORDS), tmp_path).lines is None
    with pytest.raises(InputError, match=r"table\.json: record 2: a key occurs twice"):
        read('[{"a": 1}, {"a": 1, "a": 2}]', tmp_path)


def test_what_pandas_writes_is_what_pandas_reads(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "\u00e9", None], "c": [0.5, None, 1e300]})
    table = read(frame.to_json(orient="records"), tmp_path)
    assert table.frame.equals(pl.from_pandas(frame))
    table = read(frame.to_json(orient="table", index=False), tmp_path)
    assert table.frame.equals(pl.from_pandas(frame))


@pytest.mark.parametrize("orient", ["split", "index", "columns", "values"])
@pytest.mark.parametrize("indent", [None, 2])
def test_other_shapes_of_pandas_are_refused_with_advice(
    orient: Any, indent: int | None, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(InputError, match=r"to_json|not a JSON object") as caught:
        read(frame.to_json(orient=orient, indent=indent), tmp_path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("[]", "is empty"),
        ("[{}]", "holds a key and a value"),
        ('[{"a": 1}, 3]', "record 2 is not a JSON object"),
        ('[{"a": 1},\n3]', "line 2 is not a JSON object"),
        ('[{"a": 1},]', "line 1, column 11"),
        ('[{"a": 1} {"a": 2}]', "Expecting ',' or ']'"),
        ('[{"a": 1}', "is cut short"),
        ('[{"a": 1}, {"a": ', "line 1, column 18"),
        ('{"data": [{"a": 1}, {"a": 2}]', "is cut short"),
        ('{"data": [{"a": 1}], }', "Expecting a key"),
        ('{"data": [{"a": 1}] "n": 3}', "Expecting ',' or '}'"),
        ('{"data": [{"a": 1}], "data": [{"a": 2}]}', "occurs twice"),
        ('{"u": [{"a": 1}], "v": [{"a": 2}]}', 'several keys ("u", "v")'),
        ('[{"a": 1}]\n{"a": 2}', "line 2 has text after the end"),
        ('{\n"a": 1\n}\n{\n"a": 2\n}', "line 4 has text after the end"),
        ('{"type": "FeatureCollection", "features": [{"properties": {}}]}', "GeoJSON"),
        ('[{"a": ' + "[" * 50_000, "nested too deeply"),
        ('{"a": ' + '{"a": ' * 50_000, "nested too deeply"),
        ('[{"a": ' + "9" * 5000 + "}]", "Exceeds the limit"),
        ('[{"a": "\\ud800"}]', "half a surrogate pair"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_records_is_refused_in_one_line(
    data: str, words: str, tmp_path: Path
) -> None:
    path = write(data, tmp_path)
    for open_it in (read_table, lambda path: open_table(path, in_memory_rows=0, part_rows=1)):
        with pytest.raises(InputError) as caught:
            open_it(path)  # type: ignore[operator]
        assert words in str(caught.value)
        assert str(caught.value).startswith(f"{path}: ") and str(caught.value).isprintable()
        assert str(caught.value).count("table.json") == 1


def test_one_object_is_one_record(tmp_path: Path) -> None:
    for data in ('{"a": 1, "b": [2]}', '{\n"a": 1,\n"b": [2]\n}'):
        table = read(data, tmp_path)
        assert table.frame.rows() == [(1, "[2]")] and table.source.format == "jsonl"


def test_objects_a_line_stay_lines_whatever_they_hold(tmp_path: Path) -> None:
    lines = '{"items": [{"q": 1}], "n": 1}\n{"items": [], "n": 2}\n'
    for name in ("table.json", "table.jsonl"):
        table = read(lines, tmp_path, name)
        assert table.frame.rows() == [('[{"q": 1}]', 1), ("[]", 2)]
        assert table.source.format == "jsonl"
    with pytest.raises(InputError, match="line 1, column 7: not JSON"):
        read('{"a": x}\n{"a": 2}\n', tmp_path)


def test_a_text_may_begin_with_a_bracket(tmp_path: Path) -> None:
    table = read("[mm],[kg]\n1,2\n3,4\n", tmp_path, "table.csv")
    assert table.frame.columns == ["[mm]", "[kg]"]


@pytest.mark.parametrize("option", [{"delimiter": ","}, {"skip_rows": 1}, {"bad_lines": "skip"}])
def test_options_of_lines_do_not_apply(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises((ConfigError, InputError)):
        read(json.dumps(RECORDS), tmp_path, **option)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_is_the_same_in_parts_and_whole(indent: int | None, tmp_path: Path) -> None:
    # Only the last record determines the column's type.
    records = [*RECORDS * 40, {"a": 0.5, "d": True}]
    whole = read_both_ways(write(json.dumps(records, indent=indent), tmp_path), 64)
    assert whole.frame.height == len(records) and (whole.lines is None) == (indent is None)


def test_bytes_that_are_no_text_are_refused_by_their_line(tmp_path: Path) -> None:
    path = write(b'{"data": [\n{"a": "\xff"}]}', tmp_path)
    with pytest.raises(InputError, match=r"table\.json: line 2 is not UTF-8 text"):
        read_table(path, bad_lines="skip", encoding="utf-8")
