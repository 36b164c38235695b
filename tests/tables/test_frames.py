"""Data frames of other libraries: how columns are read, and the kind of frame returned."""

import datetime as dt
import uuid
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kpca_apps.errors import InputError
from kpca_apps.tables.frames import column_name, frame_beside, frame_rows, read_frame
from kpca_apps.tables.table import PartedTable

FRAME = pd.DataFrame({"size": [1.5, None, 3.0], "town": ["Ulm", "Bonn", None]})
REASONS = pl.Series([None, "size", None])
ADDED = {
    "reason": REASONS,
    "rarity": np.array([0.5, 0.1, np.nan]),
    "p_value": None,
    "flagged": np.array([0, 1, 0]) > 0,
}


def read(values: Any, **others: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return the cells read from a column of a pandas frame, and the notes on it."""
    table = read_frame(pd.DataFrame({"x": values, "y": [1, 2, 3], **others})).table
    return table.frame["x"].to_list(), table.source.notes


# Name of the case, values of the column, expected cells, and the start of the expected note.
COLUMNS: list[tuple[str, Any, list[Any], str]] = [
    ("text", ["a", None, "b"], ["a", None, "b"], ""),
    ("string", pd.array(["a", None, "b"], dtype="string"), ["a", None, "b"], ""),
    ("numbers and text", [1, "a", 2.5], ["1", "a", "2.5"], "Read as text, as cells are of sev"),
    ("truth and numbers", [True, 0, 2], ["True", "0", "2"], "Read as text, as cells"),
    ("objects that are numbers", pd.Series([1, np.float64(2.5), None], dtype=object),
     [1, 2.5, None], ""),
    ("decimals", [Decimal("1.5"), None, Decimal("2")], [1.5, None, 2.0], ""),
    ("decimals and floats", [Decimal("1.5"), 2.5, Decimal("NaN")], [1.5, 2.5, None], ""),
    ("fractions", [Fraction(1, 4), Fraction(1, 2), 1], [0.25, 0.5, 1.0], ""),
    ("beyond 64 bits", [2**70 + 1, 1, None], [str(2**70 + 1), "1", None], ""),
    ("long decimals", pd.array([2**70 + 1, 1, None], pd.ArrowDtype(pa.decimal128(38))),
     [str(2**70 + 1), "1", None], ""),
    ("longer decimals", pd.array([2**70 + 1, 1, None], pd.ArrowDtype(pa.decimal256(60))),
     [str(2**70 + 1), "1", None], ""),
    ("short decimals", pd.array([10**17 + 1, 1, None], pd.ArrowDtype(pa.decimal128(18))),
     [10**17 + 1, 1, None], ""),
    ("lists", [[1, 2], [3], None], ["[1, 2]", "[3]", None], "Lists and records read as text"),
    ("records", [{"a": 1}, {"b": "é"}, {}], ['{"a": 1}', '{"b": "é"}', "{}"], "Lists and rec"),
    ("arrays", [np.array([1, 2]), np.array([np.nan]), None], ["[1, 2]", "[null]", None], "Lists"),
    ("bytes", pd.Series([b"\xff\x01", b"ab", None]), ["ff01", "ab", None], "Bytes read as text"),
    ("dates and text", [dt.date(2020, 5, 1), "2020-05-02", None],
     ["2020-05-01", "2020-05-02", None], "Read as text, as cells"),
    ("dates and times", [dt.date(2020, 5, 1), dt.datetime(2020, 5, 1, 12), None],
     ["2020-05-01", "2020-05-01 12:00:00", None], "Read as text, as cells"),
    ("dates", [dt.date(2020, 5, 1), None, dt.date(1500, 1, 1)],
     [dt.date(2020, 5, 1), None, dt.date(1500, 1, 1)], ""),
    ("times of day", [dt.time(1, 2), None, dt.time(3)], ["01:02:00", None, "03:00:00"], ""),
    ("periods", pd.period_range("2020-01", periods=3, freq="Q"),
     [dt.datetime(2020, m, 1) for m in (1, 4, 7)], "Periods read as the dates they start on"),
    ("durations", pd.to_timedelta([90, None, 2], unit="s"), [90.0, None, 2.0], "Durations read"),
    ("intervals", pd.interval_range(0, 3), ["(0, 1]", "(1, 2]", "(2, 3]"], "Intervals read as"),
    ("binned", pd.cut([1, 5, 9], [0, 4, 10]), ["(0, 4]", "(4, 10]", "(4, 10]"], ""),
    ("categories", pd.Categorical(["b", None, "b"]), ["b", None, "b"], ""),
    ("categories of years", pd.Categorical(pd.period_range("2020", periods=3, freq="Y")),
     ["2020", "2021", "2022"], ""),
    ("nullable integers", pd.array([1, None, 3], dtype="Int64"), [1, None, 3], ""),
    ("nullable truth", pd.array([True, None, False], dtype="boolean"), [True, None, False], ""),
    ("NA among objects", pd.Series([1, pd.NA, pd.NaT], dtype=object), [1, None, None], ""),
    ("arrow", pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int16())), [1, None, 3], ""),
    ("sparse", pd.arrays.SparseArray([0.0, 0.0, 1.5]), [0.0, 0.0, 1.5], ""),
    ("half floats", np.array([0.5, 1, 2], dtype=np.float16), [0.5, 1.0, 2.0], ""),
    ("nothing", pd.Series([None, None, np.nan], dtype=object), [None] * 3, ""),
    ("identifiers", [uuid.UUID(int=k) for k in range(3)],
     [str(uuid.UUID(int=k)) for k in range(3)], ""),
]  # fmt: skip


@pytest.mark.parametrize(("values", "cells", "note"), [row[1:] for row in COLUMNS],
                         ids=[row[0] for row in COLUMNS])  # fmt: skip
def test_columns_of_pandas(values: Any, cells: list[Any], note: str) -> None:
    found, notes = read(values)
    assert found == cells
    assert len(notes) == bool(note)
    assert "".join(notes).startswith(note)
    assert not notes or notes[0].endswith(': "x".')


@pytest.mark.parametrize("ignored", ["", "1"], ids=["", "pandera is imported"])
def test_times_with_zones_are_the_same_moments(
    ignored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", ignored)
    zoned = pd.date_range("2020-05-01", periods=3, tz="Asia/Tokyo")
    moments = [moment.to_pydatetime() for moment in zoned]
    assert read(zoned)[0] == moments
    mixed = pd.Series([moments[0], moments[1].astimezone(dt.UTC), None], dtype=object)
    assert read(mixed)[0] == [*moments[:2], None]
    fixed = pd.to_datetime(["2020-05-01T00:00+02:00"] * 3)
    assert read(fixed)[0][0] == dt.datetime(2020, 4, 30, 22, tzinfo=dt.UTC)
    # If one time has no zone, the column is text.
    cells, notes = read(pd.Series([moments[0], dt.datetime(2020, 5, 1), None], dtype=object))
    assert cells == ["2020-05-01 00:00:00+09:00", "2020-05-01 00:00:00", None]
    assert notes[0].startswith("Read as text")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1 + 2j, 2, 3], r'^table: column "x" holds complex numbers: give real and imaginary'),
        (pd.Series([1, 2j, "a"], dtype=object), 'column "x" holds complex numbers'),
        ([object()] * 3, 'column "x" holds objects of the type object: '),
        ([{1, 2}, {3}, None], 'column "x" holds objects of the type set: '),
        ([[{1}], [2], [3]], 'column "x" holds objects of the type set: '),
    ],
)
def test_an_unreadable_column_is_reported_in_one_line(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(values)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_notes_name_a_few_of_many_columns() -> None:
    frame = pd.DataFrame({f"x{k}": pd.Series([1, "a"], dtype=object) for k in range(9)})
    (note,) = read_frame(frame).table.source.notes
    assert note.endswith('"x0", "x1", "x2", "x3", "x4" and 4 more.')


def test_names_of_columns_become_text_of_their_own() -> None:
    pairs = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "")])
    for labels, names in (
        ([0, 1, 2], ["0", "1", "2"]),
        (pairs, ["a / x", "a / y", "b"]),
        (["x", "x", ""], ["x", "x_2", "column_3"]),
        ([1, "1", None], ["1", "1_2", "column_3"]),
        (pd.date_range("2020", periods=3), [f"2020-01-0{k} 00:00:00" for k in (1, 2, 3)]),
    ):
        table = read_frame(pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=labels)).table
        assert table.frame.columns == names and table.frame.row(1) == (4, 5, 6)
    assert column_name(("a", 1)) == "a / 1"


def test_the_index_names_the_rows_unless_it_counts_them() -> None:
    towns = FRAME.assign(number=[7, 8, 9])

    def id_of(frame: pd.DataFrame, **options: Any) -> tuple[str | None, list[Any]]:
        read = read_frame(frame, **options)
        if read.id is None or read.id in frame.columns:
            assert read.table.frame.columns == list(frame.columns)
            return read.id, []
        assert read.table.frame.columns == [read.id, *frame.columns]
        assert f'Rows are named by the index, "{read.id}".' in read.table.source.notes
        return read.id, read.table.frame[read.id].to_list()

    assert id_of(towns) == (None, []) and id_of(towns.set_axis([0, 1, 2])) == (None, [])
    assert id_of(towns.set_index("number")) == ("number", [7, 8, 9])
    assert id_of(towns.set_index("number"), id="town") == ("town", [])
    assert id_of(towns.iloc[1:]) == ("index", [1, 2])
    assert id_of(towns.rename_axis("k")) == ("k", [0, 1, 2])
    dates = pd.DatetimeIndex([pd.Timestamp(2020, 5, 1), pd.Timestamp(2020, 5, 2, 12), None])
    times = [dt.datetime(2020, 5, 1), dt.datetime(2020, 5, 2, 12), None]
    assert id_of(towns.set_axis(dates)) == ("index", times)
    several = towns.set_index(["town", "number"])
    assert id_of(several) == ("town / number", ["Ulm / 7", "Bonn / 8", " / 9"])
    assert id_of(several, id="number") == ("number", [7, 8, 9])
    texts = ["2020-05-01 / 7", "2020-05-02 12:00:00 / 8", " / 9"]
    assert id_of(towns.set_index([dates, "number"])) == ("number", texts)
    # A column with the index's name keeps its name.
    both = towns.set_index(pd.Index(["a", "b", "c"], name="town"))
    assert id_of(both, id="town") == ("town", []) and read_frame(both).id == "town_2"


def test_categories_of_numbers_are_known() -> None:
    frame = pd.DataFrame(
        {"zone": pd.Categorical([3, 1, 3]), "town": pd.Categorical(["a", "b", "a"]), "y": [1, 2, 3]}
    )
    read = read_frame(frame)
    assert read.categories == ("zone",) and read.table.frame["zone"].to_list() == ["3", "1", "3"]
    # The index is the first column of the table and does not shift the others.
    assert read_frame(frame.set_index("y")).categories == ("zone",)


class Streaming:
    """A frame of an unknown library that supports Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pl.DataFrame(as_arrow()).__arrow_c_stream__(requested_schema)


def as_arrow() -> pa.Table:
    return pa.table({"size": [1.5, None, 3.0], "town": ["Ulm", "Bonn", None]})


TOWNS = ["Ulm", "Bonn", None]
KINDS: dict[str, tuple[Callable[[], Any], type]] = {
    "pandas": (lambda: FRAME, pd.DataFrame),
    "polars": (lambda: pl.DataFrame(as_arrow()), pl.DataFrame),
    "lazy": (lambda: pl.DataFrame(as_arrow()).lazy(), pl.DataFrame),
    "arrow": (as_arrow, pa.Table),
    "batch": (lambda: as_arrow().to_batches()[0], pa.Table),
    "reader": (lambda: as_arrow().to_reader(), pa.Table),
    "stream": (Streaming, pl.DataFrame),
    "dict": (lambda: {"size": [1.5, None, 3.0], "town": ("Ulm", "Bonn", None)}, pl.DataFrame),
    "dict of columns": (lambda: {"size": np.array([1.5, np.nan, 3]), "town": FRAME["town"]},
                        pl.DataFrame),
    "dict of arrow": (lambda: {"size": as_arrow()["size"], "town": pl.Series(TOWNS)}, pl.DataFrame),
    "structured": (lambda: np.array([(1.5, "Ulm"), (np.nan, "Bonn"), (3, None)],
                                    dtype=[("size", "f8"), ("town", object)]), pl.DataFrame),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_library_gives_the_same_table_and_gets_its_own_back(kind: str) -> None:
    make, returned = KINDS[kind]
    read = read_frame(make())
    assert read.table.frame.rows() == [(1.5, "Ulm"), (None, "Bonn"), (3.0, None)]
    assert read.table.frame.columns == ["size", "town"]
    assert (read.table.source.format, read.id) == ("frame", None)
    assert read.table.source.sha256 == read_frame(FRAME).table.source.sha256

    beside = frame_beside(read.given, ADDED)
    assert isinstance(beside, returned)
    as_polars = pl.DataFrame(beside)
    assert as_polars.columns == ["size", "town", "reason", "rarity", "flagged"]
    assert as_polars["reason"].to_list() == REASONS.to_list()
    assert as_polars["flagged"].to_list() == [False, True, False]
    assert pl.DataFrame(frame_rows(read.given, np.array([2, 0])))["size"].to_list() == [3.0, 1.5]


def test_arrays_of_two_dimensions() -> None:
    numbers = read_frame(np.arange(6, dtype=">i4").reshape(3, 2)).table.frame
    assert numbers.rows() == [(0, 1), (2, 3), (4, 5)]
    assert numbers.columns == ["column_0", "column_1"]
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    assert read_frame(masked).table.frame.rows() == [(1, None), (3, 4)]
    assert read_frame(
        np.array([["2020-01", "NaT"], ["2021-02", "2022-03"]], dtype="M8[M]")
    ).table.frame.row(1) == (dt.datetime(2021, 2, 1), dt.datetime(2022, 3, 1))
    mixed = np.array([[1, "a"], [None, 2.5]], dtype=object)
    assert read_frame(mixed).table.frame.rows() == [(1, "a"), (None, "2.5")]
    assert read_frame(np.array([["1", "b"]])).table.frame.rows() == [("1", "b")]
    assert read_frame(np.ones((1, 1), np.longdouble)).table.frame.rows() == [(1.0,)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (FRAME["size"], r"^table: pandas\.Series is one column: give a data frame, as .to_frame"),
        (pl.Series([1]), r"polars\.Series is one column"),
        (pa.chunked_array([[1]]), r"pyarrow\.ChunkedArray is one column"),
        (FRAME.iloc[:0], "no rows"),
        (FRAME[[]], "no columns"),
        ({}, "no columns"),
        ({"a": [1, 2], "b": [1, 2, 3]}, 'column "b" has 3 values, "a" has 2'),
        ({"a": [1, 2], "b": 3}, 'column "b" is a single value'),
        ({"a": [1, 2], "b": "xy"}, 'column "b" is a single value'),
        ({"a": [10**400, 1.5]}, r'column "a" cannot be read \(int too large'),
        ({"a": np.ones((2, 2))}, 'column "a" has 2 dimensions'),
        (np.arange(3), r"array of 1 dimensions \(3\) is not a table"),
        (np.ones((2, 2, 2)), r"array of 3 dimensions \(2 x 2 x 2\)"),
        (np.ones((2, 2), complex), 'column "column_0" holds complex numbers'),
        (pl.LazyFrame({"a": [1]}).select("b"), "LazyFrame cannot be collected: "),
        (3, "int is not a table: give a data frame of pandas"),
        ([{"a": 1}], "list is not a table"),
        (None, "NoneType is not a table"),
    ],
)
def test_objects_that_are_no_table_are_refused_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_frame(given)
    assert "\n" not in str(caught.value)


def test_a_long_stream_is_reported_like_a_short_one() -> None:
    kinds = {
        "lasted": pa.array([90, None, 2], pa.duration("s")),
        "list": pa.array([[1], None, [2, 3]]),
        "record": pa.array([{"a": 1}, {"a": 2}, None]),
        "pair": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2)),
        "size": pa.array([1.5, 2.0, None]),
        "span": pa.array([(25, 2, 10**9), None, (-1, 0, 0)], pa.month_day_nano_interval()),
    }
    rows = pa.table(kinds)
    short, long = (read_frame(rows.to_reader(), in_memory_rows=most).table for most in (9, 2))
    assert isinstance(long, PartedTable)
    assert len(short.source.notes) == 3
    assert short.frame["span"].to_list() == [(2 * 365.25 + 32) * 86400 + 1, None, -30 * 86400]
    assert long.source.notes == short.source.notes
    assert long.parts[0].read().frame.rows() == short.frame.rows()


def test_a_stream_of_one_column_is_no_table() -> None:
    class Column:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pl.Series([1, 2]).__arrow_c_stream__(requested_schema)

    with pytest.raises(InputError, match=r"\.Column is not a table \("):
        read_frame(Column())


def test_a_frame_elsewhere_is_to_be_brought_first() -> None:
    class DataFrame:
        def compute(self) -> pd.DataFrame:
            return FRAME

    with pytest.raises(InputError, match=r"\.DataFrame is not a table: \.compute\(\) makes one"):
        read_frame(DataFrame())
    assert read_frame(DataFrame().compute()).table.frame.height == 3


def test_what_is_done_to_a_frame_later_stays_out_of_it() -> None:
    for frame in (FRAME.copy(), pl.DataFrame(as_arrow())):
        table = read_frame(frame)
        if isinstance(frame, pl.DataFrame):
            frame.insert_column(0, pl.Series("new", [1, 2, 3]))
        else:
            frame["new"] = 1
            frame.loc[9] = [4.0, "Kiel", 1]
        assert list(table.given.columns) == ["size", "town"] and len(table.given) == 3


def test_a_frame_of_pandas_keeps_its_index_types_and_names() -> None:
    frame = pd.DataFrame(
        {
            "rank": [3, 1, 2],
            "when": pd.date_range("2020", periods=3),
            "kind": pd.Categorical(list("aba")),
        },
        index=pd.MultiIndex.from_tuples([("a", 1), ("b", 1), ("a", 1)], names=["town", None]),
    )  # fmt: skip
    beside = frame_beside(read_frame(frame).given, {"rank": np.array([2, 1, 3])})
    assert list(beside.columns) == ["rank_input", "when", "kind", "rank"]
    pd.testing.assert_index_equal(beside.index, frame.index)
    assert beside["kind"].dtype == frame["kind"].dtype
    assert list(frame.columns) == ["rank", "when", "kind"]
    assert frame_rows(beside, np.array([2])).index[0] == ("a", 1)


@pytest.mark.parametrize(
    "labels",
    [
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]),
        pd.CategoricalIndex(["a", "b"]),
        pd.Index([0, 1]),
        pd.Index(["x", "x"]),
        pd.date_range("2020", periods=2),
    ],
)
def test_columns_are_put_beside_whatever_names_a_frame_has(labels: Any) -> None:
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=labels)
    beside = frame_beside(frame, {"rank": np.array([2, 1])})
    assert beside.shape == (2, 3) and beside.iloc[:, :2].to_numpy().tolist() == [[1, 2], [3, 4]]
    assert np.ravel(beside["rank"]).tolist() == [2, 1]
    assert len(frame_rows(beside, np.array([1]))) == 1


def test_arrow_and_polars_rename_what_has_an_added_name() -> None:
    for frame in (pa.table({"rank": [1, 2]}), pl.DataFrame({"rank": [1, 2]})):
        beside = pl.DataFrame(frame_beside(frame, {"rank": np.array([2, 1])}))
        assert beside.to_dict(as_series=False) == {"rank_input": [1, 2], "rank": [2, 1]}


def test_the_interface_of_pandas_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas before 2.2 lacks the interface, and any version may lack pyarrow strings."""
    monkeypatch.delattr(pd.DataFrame, "__arrow_c_stream__")
    assert read_frame(FRAME).table.frame.height == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the option is deprecated
        with pd.option_context("future.infer_string", False):
            frame = pd.DataFrame({"town": ["Ulm", None, "Bonn"]})
    assert frame["town"].dtype == object
    assert read_frame(frame).table.frame["town"].to_list() == ["Ulm", None, "Bonn"]


def test_a_stream_that_was_read_is_to_be_made_again() -> None:
    stream = pa.RecordBatchReader.from_stream(pa.table({"a": [1, 2, 3]}))
    assert read_frame(stream).table.frame.height == 3
    with pytest.raises(InputError, match="has no rows; a stream is read only once: create"):
        read_frame(stream)
