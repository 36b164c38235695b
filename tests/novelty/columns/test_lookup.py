"""A name of a column to use selects one column; a name to hide selects every match."""

import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import OptionError
from kpca_apps.names import name_key
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.parts import AnyTable
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.tables.frames import read_frame, table_from_frame
from kpca_apps.tables.opening import read_table
from kpca_apps.tables.table import Table, parted

# One character from each range of Unicode's Default_Ignorable_Code_Point.
IGNORABLE = "\u00ad\u034f\u061c\u115f\u17b4\u180b\u180e\u200b\u202a\u2060\u2065\u3164\ufe00\ufeff"
IGNORABLE += "\uffa0\ufff0\U0001bca0\U0001d173\U000e0000\U000e0100\U000e0fff"
INVISIBLE = IGNORABLE + "\t\n\x0b\x1f\x7f\x85 \u00a0\u2003\u2028\u3000\u2800"


def table_of(*names: str) -> Table:
    table = read_frame(pl.DataFrame({name: [1, 2] for name in names})).table
    assert isinstance(table, Table)
    return table


def hidden_by(name: str, table: AnyTable) -> tuple[str, ...]:
    return resolve_columns(ColumnOptions(), table, also_hidden=[name]).hide


@given(st.text("Secr\u00e9t\u00df", min_size=1), st.text(INVISIBLE + "\"'\u201c:"), st.booleans())
def test_invisible_characters_make_no_difference(name: str, unseen: str, is_upper: bool) -> None:
    other = unicodedata.normalize("NFD", name.upper() if is_upper else name)
    assert name_key(unseen.join(("", *other, "")) if unseen.isspace() else other) == name_key(name)
    assert name_key(f"{unseen}{other}{unseen}") == name_key(name)


@pytest.mark.parametrize("unseen", INVISIBLE)
def test_every_invisible_character_is_removed(unseen: str) -> None:
    assert name_key(f"{unseen}sec{unseen}ret{unseen}") == "secret"
    assert name_key(unseen) == unseen  # a name of invisible characters only is not changed


@given(st.text(min_size=1))
def test_a_key_is_its_own_key_and_never_empty(name: str) -> None:
    assert name_key(name)
    assert name_key(name_key(name)) == name_key(name) or not name.strip()


def test_names_that_look_different_are_different() -> None:
    names = ["secret", "secrets", "sec_ret", "sec-ret", "s\u00e9cret", "x2", "x\u00b2", "secret."]
    assert len(set(map(name_key, names))) == len(names)


def test_one_column_is_chosen_as_written_or_where_no_other_looks_like_it() -> None:
    table = table_of("Name", "name", "Size ", "kind")
    options = ColumnOptions(id="name", label="KIND", exclude=("size",), numeric=("Size ",))
    with pytest.raises(Exception, match='"Size " is given to both --exclude and --numeric'):
        resolve_columns(options, table)
    columns = resolve_columns(ColumnOptions(id="name", label="KIND", by=("size",)), table)
    assert (columns.id, columns.label, columns.by) == ("name", "kind", ("Size ",))
    assert resolve_columns(columns, table) == columns
    with pytest.raises(
        OptionError, match=r'--id names .*"NAME", which may be any of "Name", "name"'
    ):
        resolve_columns(ColumnOptions(id="NAME"), table)


def test_all_matching_columns_are_hidden_and_names_without_a_match_refused() -> None:
    table = table_of("Name", "name", "size")
    assert resolve_columns(ColumnOptions(hide=("NAME",)), table).hide == ("Name", "name")
    with pytest.raises(OptionError, match=r'--hide names .*"nam" .*Did you mean "Name"'):
        resolve_columns(ColumnOptions(hide=("nam",)), table)
    also = resolve_columns(ColumnOptions(hide=("size",)), table, also_hidden=("name", "lost"))
    assert also.hide == ("size", "Name", "name")


@pytest.mark.parametrize("part_rows", [None, 2])
def test_columns_are_known_by_their_header_and_their_fields(
    tmp_path: Path, part_rows: int | None
) -> None:
    path = tmp_path / "t.csv"
    rows = ["1,2,3,,", '4,5,6,"{""a"": [{""Id\\u00e9"": 1}]}",{\'who\': 2}', "7,8,9,,{note}"]
    path.write_text("\n".join(["x,y,x,deep,flat", *rows]), encoding="utf-8")
    read = read_table(path)
    assert read.source.renamed == (("x_2", "x"),)
    table = read if part_rows is None else parted(read, part_rows=part_rows)
    meant = {
        "X": ("x", "x_2"), "x_2": ("x_2",), "id\u00e9": ("deep",), "deep.a.id\u00e9": ("deep",),
        "y.id\u00e9": (), "WHO": ("flat",), "flat.who": ("flat",), "flat": ("flat",), "note": (),
    }  # fmt: skip
    assert {name: hidden_by(name, table) for name in meant} == meant


@pytest.mark.parametrize(
    "cell",
    [
        '{"iban": 1}', "{'iban': 1}", "{iban: 1}", "{iban={'v': 1}}", 'data={"iban": 1}',
        '\ufeff{"iban": 1}', '"{\\"iban\\": 1}"', '{"p": "{\\"iban\\": 1}"}',
    ],
)  # fmt: skip
def test_a_field_is_found_however_records_are_written(cell: str) -> None:
    frame = pl.DataFrame({"rec": [cell, None], "plain": ["iban 1", "[2]"]})
    assert hidden_by("iban", table_from_frame(frame)) == ("rec",)


def test_a_reference_may_spell_a_hidden_name_otherwise() -> None:
    table, reference = table_of("Secret", "size"), table_of("secret", "size", "kind")
    options = ColumnOptions(hide=("secret",), exclude=("KIND",))
    columns = resolve_columns(options, table, reference=reference)
    assert (columns.hide, columns.exclude) == (("Secret", "secret"), ("kind",))
    with pytest.raises(OptionError, match=r'--by names .*"kind"'):  # a column of the reference only
        resolve_columns(ColumnOptions(by=("kind",)), table, reference=reference)
    with pytest.raises(OptionError, match=r'--hide names .*"kind"'):
        resolve_columns(ColumnOptions(hide=("kind",)), table, reference=reference)


def test_names_of_a_frame_that_repeat_are_known_too() -> None:
    import pandas as pd

    given = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    assert hidden_by("A", read_frame(given).table) == ("a", "a_2")
    assert table_from_frame(pl.DataFrame({"a": [1]})).source.renamed == ()
