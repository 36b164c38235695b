"""Convert data frames of polars, pandas, pyarrow and others to tables, and add columns to them.

Pandas and other libraries are not imported: a caller who passes their frames has loaded them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kpca_apps.errors import InputError, KpcaError, about
from kpca_apps.names import listed, name_key, one_line, reason_of, unique_names
from kpca_apps.system.memory import ROWS_IN_MEMORY
from kpca_apps.tables.input_file import ReadOptions
from kpca_apps.tables.read.arrow import read_batches
from kpca_apps.tables.source_info import SourceInfo
from kpca_apps.tables.table import (
    DURATIONS,
    NESTED,
    PartedTable,
    Table,
    as_polars,
    hash_cells,
    plain_types,
    remark_on_type,
    require_cells,
)
from kpca_apps.tables.write import Added, input_names

_WANTED = (
    "give a data frame of pandas, polars or pyarrow, a dict of columns, a numpy array of two "
    "dimensions, or the path of a file."
)
# Methods that convert lazy frames and frames of other libraries, in order of preference.
_MAKERS = ("compute", "to_pandas", "toPandas", "to_arrow", "to_polars", "collect")
_AS_TEXT = {
    "mixed": "Read as text, as cells are of several types",
    "nested": NESTED,
    "bytes": "Bytes read as text",
}
# Families of types that one column may mix. A type belongs to the first family that fits.
_FAMILIES = {
    "booleans": bool | np.bool_,
    "numbers": int | float | np.integer | np.floating | Decimal | Fraction,
    "texts": str,
    "bytes": bytes,
    "moments": datetime,
    "dates": date,
    "times": time,
    "durations": timedelta,
    "nested": list | tuple | dict | np.ndarray,
}
_COMPLEX = "holds complex numbers: give real and imaginary parts as two columns, or drop it."


@dataclass(frozen=True)
class Frame:
    """A table, and the data frame that it was converted from."""

    given: Any  # frame of pandas, polars or pyarrow to which columns can be added, or None
    table: Table | PartedTable
    id: str | None  # column that names the rows, from `id` or the index of pandas
    categories: tuple[str, ...] = ()  # numeric columns that are categories in pandas


def read_frame(
    data: Any,
    id: str | None = None,
    name: str = "table",
    *,
    by_index: bool = True,
    in_memory_rows: float = ROWS_IN_MEMORY,
) -> Frame:
    """Convert a data frame of any library to a table; messages call the frame `name`.

    An index of pandas becomes the first column, unless it is unnamed and only counts the rows,
    `by_index` is False, or `id` names a column. `id` may also name a level of the index. An Arrow
    stream of more than `in_memory_rows` rows is written to parts on disk.
    """
    notes: list[str] = []
    with about(name):
        if (stream := _stream_of(data)) is not None:
            batches, held, n_rows = _batches(stream, data), list[pa.RecordBatch](), 0
            for batch in batches:
                held.append(batch)
                n_rows += batch.num_rows
                if n_rows > in_memory_rows:
                    source = SourceInfo(name, "frame", "", 0, 0, 0)
                    rows = chain(held, batches)
                    options = ReadOptions(in_memory_rows=0)
                    found = read_batches(stream.schema, rows, source, options)
                    return Frame(None, found, id)
            if data is stream and not n_rows:
                raise InputError(
                    "the table has no rows; a stream is read only once: create it again."
                )
            frame, columns = _columns_of(pa.Table.from_batches(held, stream.schema))
            frame = frame if data is stream else None
        else:
            frame, columns = _columns_of(data)
        index: list[tuple[Hashable, Any]] = []
        if _is_pandas(frame, "DataFrame") and (by_index or id is not None):
            index = _index_of(frame.index, id, {column_name(label) for label, _ in columns})
        cells, renamed = _read_columns([*columns, *index], notes)
        if index:
            cells, id = [cells[-1], *cells[:-1]], cells[-1].name
            notes.append(f"Rows are named by the index, {listed([id])}.")
        categories = tuple(
            column.name
            for column, (_, values) in zip(cells[len(index) :], columns, strict=True)
            if _is_pandas(values, "Series") and _holds_codes(values.dtype)
        )
        table = table_from_frame(pl.DataFrame(cells), name, notes)
        table = replace(table, source=replace(table.source, renamed=tuple(renamed.items())))
    return Frame(table.frame if frame is None else frame, table, id, categories)


def column_name(label: Hashable) -> str:
    """Convert a column label of any type to text; the parts of a tuple are joined by slashes."""
    if isinstance(label, tuple):
        return " / ".join(filter(None, map(column_name, label)))
    return "" if label is None else str(label)


def frame_beside(frame: Any, found: Added) -> Any:
    """Add columns to a frame of pandas, polars or pyarrow; skip columns that are ``None``.

    If the frame has a column with the name of an added column, the frame's column is renamed.
    """
    added = {name: values for name, values in found.items() if values is not None}
    if _is_pandas(frame, "DataFrame"):
        cells = {name: np.asarray(values) for name, values in added.items()}
        beside = _pandas().DataFrame(cells, index=frame.index)
        named = frame.copy(deep=False)
        if frame.columns.nlevels > 1:
            beside.columns = _pandas().MultiIndex.from_tuples(
                [(name, *[""] * (frame.columns.nlevels - 1)) for name in added]
            )
        elif not added.keys().isdisjoint(map(column_name, frame.columns)):
            data = map(column_name, frame.columns)
            named.columns = list(input_names(data, added)[0])
        return _pandas().concat([named, beside], axis=1)
    columns = [pl.Series(name, values) for name, values in added.items()]
    columns = [c.fill_nan(None) if c.dtype.is_float() else c for c in columns]
    if isinstance(frame, pa.Table):
        frame = frame.rename_columns(input_names(frame.column_names, added)[0])
        for c in columns:
            frame = frame.append_column(c.name, c.to_arrow(compat_level=pl.CompatLevel.oldest()))
        return frame
    names, _ = input_names(frame.columns, added)
    return frame.rename(dict(zip(frame.columns, names, strict=True))).with_columns(columns)


def frame_like(data: Any, columns: Mapping[str, pl.Series]) -> Any:
    """Return columns as a pandas or pyarrow frame if `data` is one, else as a polars frame."""
    frame = pl.DataFrame(columns)
    if _is_pandas(data, "DataFrame"):
        return _pandas().DataFrame({name: cells.to_list() for name, cells in columns.items()})
    return frame.to_arrow() if isinstance(data, pa.Table) else frame


def frame_rows(frame: Any, positions: NDArray[np.int64]) -> Any:
    """Return the rows of a frame of pandas, polars or pyarrow at some positions."""
    if _is_pandas(frame, "DataFrame"):
        return frame.iloc[positions]
    return frame.take(positions) if isinstance(frame, pa.Table) else frame[positions]


def frame_without(frame: Any, names: Sequence[str], hidden: Collection[str]) -> Any:
    """Remove the values of hidden columns from a frame of pandas, polars or pyarrow.

    `names` begin with the levels of an index, if any; a hidden index becomes row numbers.
    """
    names = list(names)
    if _is_pandas(frame, "DataFrame"):
        n_index = len(names) - frame.shape[1]
        frame = frame.copy(deep=False)
        if any(name in hidden for name in names[:n_index]):
            frame = frame.reset_index(drop=True)
        for place, name in enumerate(names[n_index:]):
            if name in hidden:
                frame.isetitem(place, _pandas().Series(None, index=frame.index, dtype=object))
        return frame
    if isinstance(frame, pa.Table):
        for place, name in enumerate(names):
            if name in hidden:
                field = frame.schema.field(place)
                frame = frame.set_column(place, field, pa.nulls(len(frame), field.type))
        return frame
    return frame.with_columns(
        pl.lit(None, cells.dtype).alias(cells.name)
        for cells, name in zip(frame.iter_columns(), names, strict=True)
        if name in hidden
    )


def table_from_frame(frame: pl.DataFrame, name: str = "table", notes: Sequence[str] = ()) -> Table:
    """Convert a polars frame to a table, whose source has the SHA-256 of names and cells."""
    plain = plain_types(frame)
    require_cells(plain.height, plain.width)
    digest = hashlib.sha256()
    n_bytes = hash_cells(plain, digest)
    source = SourceInfo(
        name, "frame", digest.hexdigest(), n_bytes, *plain.shape, notes=tuple(notes)
    )
    return Table(plain, None, source)


def _pandas() -> Any:
    return sys.modules["pandas"]


def _is_pandas(value: Any, kind: str) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, getattr(pandas, kind))


def _columns_of(data: Any) -> tuple[Any, list[tuple[Hashable, Any]]]:
    """Return a frame to add columns to (None if there is none), and (label, column) pairs."""
    if isinstance(data, pl.LazyFrame):
        try:
            data = data.collect()
        except pl.exceptions.PolarsError as error:
            raise InputError(f"the LazyFrame cannot be collected: {reason_of(error)}.") from None
    if isinstance(data, pl.DataFrame):
        return data.clone(), [(column.name, column) for column in data.iter_columns()]
    if _is_pandas(data, "DataFrame"):
        # Copy the frame, not its cells, so that columns added later by the caller do not show up.
        frame = data.copy(deep=False)
        return frame, [(label, frame.iloc[:, k]) for k, label in enumerate(frame.columns)]
    if isinstance(data, pl.Series | pa.Array | pa.ChunkedArray) or _is_pandas(data, "Series"):
        name = _type_name(data)
        raise InputError(f"{name} is one column: give a data frame, as .to_frame() makes one.")
    if isinstance(data, Mapping):
        return None, list(data.items())
    if isinstance(data, np.ndarray):
        return None, _columns_of_array(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, pa.Table):
        makers = (f".{name}() makes one; " for name in _MAKERS if hasattr(data, name))
        raise InputError(f"{_type_name(data)} is not a table: {next(makers, '')}{_WANTED}")
    return data, list(zip(data.column_names, data.columns, strict=True))


def _stream_of(data: Any) -> pa.RecordBatchReader | None:
    if isinstance(data, pa.RecordBatchReader):
        return data
    is_held = isinstance(
        data, pl.DataFrame | pl.Series | pa.Table | pa.RecordBatch | pa.ChunkedArray
    )
    if is_held or _is_pandas(data, "DataFrame") or _is_pandas(data, "Series"):
        return None
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    try:
        return pa.RecordBatchReader.from_stream(data)
    except Exception as error:  # the library of the frame may raise any exception
        raise InputError(
            f"{_type_name(data)} is not a table ({reason_of(error)}): {_WANTED}"
        ) from None


def _batches(stream: pa.RecordBatchReader, data: Any) -> Iterator[pa.RecordBatch]:
    try:
        yield from stream
    except Exception as error:  # the library of the frame may raise any exception
        raise InputError(
            f"{_type_name(data)} broke off while it was read ({reason_of(error)}); create it again."
        ) from None


def _type_name(data: Any) -> str:
    kind = type(data)
    library = kind.__module__.split(".")[0]
    return kind.__name__ if library == "builtins" else f"{library}.{kind.__name__}"


def _columns_of_array(data: NDArray[Any]) -> list[tuple[Hashable, Any]]:
    if data.dtype.names is not None and data.ndim == 1:
        return [(name, data[name]) for name in data.dtype.names]
    if data.ndim != 2 or data.dtype.names is not None:
        shape = " x ".join(map(str, data.shape)) or "no"
        raise InputError(
            f"an array of {data.ndim} dimensions ({shape}) is not a table: give one of rows by "
            "columns."
        )
    return [(f"column_{k}", data[:, k]) for k in range(data.shape[1])]


def _index_of(index: Any, id: str | None, names: set[str]) -> list[tuple[Hashable, Any]]:
    """Return the label and values of an index if it names the rows; else an empty list."""
    if id is None:
        is_count = index.nlevels == 1 and index.name is None
        if is_count and index.equals(_pandas().RangeIndex(len(index))):
            return []
        label = column_name(tuple(index.names)) or "index"
        if index.nlevels == 1:
            return [(label, index)]
        return [(label, [" / ".join(map(_index_text, key)) for key in index])]
    key, levels = name_key(id), [name_key(column_name(one)) for one in index.names]
    if key in map(name_key, names) or levels.count(key) != 1:
        return []
    return [(id, index.get_level_values(levels.index(key)))]


def _index_text(value: Any) -> str:
    if _is_missing(value):
        return ""
    is_day = isinstance(value, datetime) and value.time() == time() and value.tzinfo is None
    return value.date().isoformat() if is_day else str(value)


def _read_columns(
    data: list[tuple[Hashable, Any]], notes: list[str]
) -> tuple[list[pl.Series], dict[str, str]]:
    """Return columns with unique names, and the original names; add notes on conversions."""
    names, name_notes, renamed = unique_names(column_name(label) for label, _ in data)
    notes += name_notes
    read_as: dict[str, list[str]] = {}  # note on a conversion -> columns converted
    columns: list[pl.Series] = []
    for name, (_, values) in zip(names, data, strict=True):
        where, remarks = f'column "{one_line(name)}"', set[str]()
        try:
            cells = _cells(values, remarks).alias(name)
        except KpcaError as error:
            raise type(error)(f"{where} {error}") from None
        except (Exception, pl.exceptions.PanicException) as error:
            raise InputError(
                f"{where} cannot be read ({reason_of(error)}): convert it to numbers, dates or "
                "text, or drop it."
            ) from None
        if isinstance(cells.dtype, pl.Duration):
            remarks.add(DURATIONS)
        if cells.dtype.is_nested():
            remarks.add(NESTED)
        columns.append(cells)
        for remark in sorted(remarks):
            read_as.setdefault(remark, []).append(name)
        if len(cells) != len(columns[0]):
            raise InputError(
                f'{where} has {len(cells):,} values, "{one_line(names[0])}" has '
                f"{len(columns[0]):,}: give one for each row."
            )
    notes += [f"{remark}: {listed(of)}." for remark, of in read_as.items()]
    return columns, renamed


def _cells(values: Any, remarks: set[str]) -> pl.Series:
    if isinstance(values, pl.Series):
        return _of_objects(values.to_list(), remarks) if values.dtype == pl.Object else values
    if _is_pandas(values, "Series") or _is_pandas(values, "Index"):
        return _of_pandas(_pandas().Series(values), remarks)
    if isinstance(values, np.ndarray):
        return _of_array(values, remarks)
    if hasattr(values, "__arrow_c_stream__"):
        return _of_arrow(pa.chunked_array(values), remarks)
    if hasattr(values, "__arrow_c_array__"):
        return _of_arrow(pa.chunked_array([pa.array(values)]), remarks)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError("is a single value: give one for each row.")
    return _of_objects(list(values), remarks)


def _of_pandas(values: Any, remarks: set[str]) -> pl.Series:
    pandas, dtype = _pandas(), values.dtype
    if isinstance(dtype, pandas.SparseDtype):
        return _of_pandas(values.sparse.to_dense(), remarks)
    if isinstance(dtype, pandas.CategoricalDtype):
        texts = pl.Series([_text(value) for value in dtype.categories], dtype=pl.String)
        codes = pl.Series(values.cat.codes.to_numpy().astype(np.int64))
        return texts.gather(codes.set(codes < 0, None))
    if isinstance(dtype, pandas.PeriodDtype):
        remarks.add("Periods read as the dates they start on")
        return _of_pandas(values.dt.to_timestamp(), remarks)
    if isinstance(dtype, pandas.IntervalDtype):
        remarks.add("Intervals read as text")
        return _of_objects(values.tolist(), remarks)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return _of_array(values.to_numpy(), remarks)
    try:
        kind = pa.large_string() if isinstance(dtype, np.dtype) else None  # objects are often texts
        return _of_arrow(pa.array(values, kind, from_pandas=True), remarks)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _of_objects(values.tolist(), remarks)


def _holds_codes(dtype: Any) -> bool:
    return (
        isinstance(dtype, _pandas().CategoricalDtype)
        and getattr(dtype.categories.dtype, "kind", "O") in "iuf"
    )


def _of_array(values: NDArray[Any], remarks: set[str]) -> pl.Series:
    if values.ndim != 1:
        raise InputError(f"has {values.ndim} dimensions: give one value for each row.")
    kind = values.dtype.kind
    if kind == "c":
        raise InputError(_COMPLEX)
    if kind not in "biufMm":
        return _of_objects(values.tolist(), remarks)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    if kind in "Mm" and np.datetime_data(values.dtype)[0] not in ("s", "ms", "us", "ns"):
        values = values.astype(f"{kind}8[s]")
    if kind == "f" and values.dtype.itemsize != 4:
        values = values.astype(np.float64)
    # Pyarrow needs a contiguous array in the byte order of this machine.
    values = np.ascontiguousarray(np.asarray(values), values.dtype.newbyteorder("="))
    return _of_arrow(pa.array(values, from_pandas=True, mask=mask), remarks)


def _of_arrow(values: pa.Array | pa.ChunkedArray, remarks: set[str]) -> pl.Series:
    if remark := remark_on_type(values.type):
        remarks.add(remark)
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return as_polars(pa.Table.from_arrays([chunked], ["cells"]))["cells"]


def _of_objects(values: list[Any], remarks: set[str]) -> pl.Series:
    cells = [None if _is_missing(value) else value for value in values]
    kinds = {type(cell) for cell in cells if cell is not None}
    families = {_family(kind) for kind in kinds}
    if not families:
        return pl.Series([None] * len(cells), dtype=pl.Null)
    # Times with a zone and times without a zone are different families.
    zones = {cell.tzinfo is None for cell in cells if isinstance(cell, datetime)}
    family = families.pop() if len(families) == 1 and len(zones) < 2 else "mixed"
    if family == "booleans":
        return pl.Series([None if cell is None else bool(cell) for cell in cells])
    if family in ("moments", "dates", "times", "durations"):
        # pyarrow would read times of any zone as UTC after pandera has been imported.
        return pl.Series(cells)
    if family != "numbers":
        remarks |= {_AS_TEXT[family]} if family in _AS_TEXT else set()
        return pl.Series([None if cell is None else _text(cell) for cell in cells], dtype=pl.String)
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        whole = pl.Series(cells, dtype=pl.Int64, strict=False)
        if whole.null_count() == cells.count(None):
            return whole
        return pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String)
    return pl.Series([None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating | Decimal) and bool(value != value)


def _family(kind: type) -> str:
    if issubclass(kind, complex | np.complexfloating):
        raise InputError(_COMPLEX)
    for name, family in _FAMILIES.items():
        if issubclass(kind, family):
            return name
    # By default, an object is shown by its memory address, and a set in no fixed order.
    is_nameless = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    if is_nameless or issubclass(kind, set | frozenset | Mapping):
        raise InputError(
            f"holds objects of the type {one_line(kind.__name__)}: convert them to numbers, dates "
            "or text, or drop it."
        )
    return kind.__qualname__


def _text(value: Any) -> str:
    if isinstance(value, _FAMILIES["nested"]):
        return json.dumps(_plain(value), ensure_ascii=False)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if _is_missing(value):
        return None
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    _family(type(value))
    return str(value)
