"""The plan of a table's columns: what each becomes, for a reader to check and to override.

Each column is judged by itself (`roles.py`); this file adds what only the whole table tells: names
and options that do not fit it, decimal commas used throughout, columns that repeat another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import suggest
from kpca_apps.files.tables.numbers import NumberFormat
from kpca_apps.files.tables.table import Table
from kpca_apps.files.tables.values import Column
from kpca_apps.novelty.table.roles import declared_spec, inferred_spec
from kpca_apps.novelty.table.specs import ColumnOptions, ColumnPlan, ColumnSpec, quoted

__all__ = ["ColumnOptions", "ColumnPlan", "ColumnSpec", "check_options", "infer_plan"]

_MIN_ROWS = 3


def infer_plan(table: Table, options: ColumnOptions | None = None) -> ColumnPlan:
    """Decide what each column of a table becomes.

    Parameters
    ----------
    table : Table
        At least 3 rows.
    options : ColumnOptions, optional
        What the user declares; wins over every rule.

    Returns
    -------
    ColumnPlan

    Raises
    ------
    ConfigError
        If an option names a column the table does not have, two options contradict each other, or
        a column declared numeric holds hardly any numbers.
    InputError
        If there are fewer than 3 rows, or no column is left for the model.

    Examples
    --------
    >>> import polars as pl
    >>> from kpca_apps.files.tables.opening import table_from_frame
    >>> frame = pl.DataFrame({"size": ["1,5", "2,5", "9,0"], "kind": ["a", "a", "a"]})
    >>> for spec in infer_plan(table_from_frame(frame)).specs:
    ...     print(spec.name, spec.role, "-", spec.why)
    size numeric - numbers (decimal comma)
    kind constant - one value only
    """
    options = options or ColumnOptions()
    where = table.source.name
    check_options(options, table.frame.columns, where)
    if table.frame.height < _MIN_ROWS:
        raise InputError(
            f"{where}: {table.frame.height} rows of data are too few to screen; "
            f"give a table with at least {_MIN_ROWS}."
        )
    specs = _specs(table, options, prefer_comma=False)
    if _uses_comma(specs):
        specs = _specs(table, options, prefer_comma=True)
    plan = ColumnPlan(_without_duplicates(table, specs, options))
    if not plan.used:
        roles = ", ".join(f"{quoted(spec.name)} is {spec.role}" for spec in plan.specs[:5])
        raise InputError(
            f"{where}: no column is left for the model ({roles}); "
            "exclude fewer columns, or declare some with --numeric or --categorical."
        )
    return plan


def check_options(options: ColumnOptions, names: Sequence[str], where: str) -> None:
    """Refuse names the table does not have, and two uses of one column.

    It takes the names alone: they are known before any row of a large table is read.
    """
    uses = {
        "--label": (options.label,) if options.label is not None else (),
        "--id": (options.id,) if options.id is not None else (),
        "--exclude": options.exclude,
        "--categorical": options.categorical,
        "--numeric": options.numeric,
    }
    taken: dict[str, str] = {}
    for option, columns in (*uses.items(), ("--hide", options.hide)):
        for name in columns:
            if name not in names:
                raise ConfigError(
                    f"{where}: {option} names a column {quoted(name)} that the table does not "
                    f"have.{suggest(name, names)}"
                )
            if option != "--hide" and taken.setdefault(name, option) != option:
                raise ConfigError(
                    f"{where}: column {quoted(name)} is given to both {taken[name]} and {option}; "
                    "keep one of them."
                )


def _specs(table: Table, options: ColumnOptions, prefer_comma: bool) -> list[ColumnSpec]:
    """One spec a column, each judged by itself."""
    specs = []
    for name in table.frame.columns:
        column = table.column(name)
        spec = declared_spec(column, options, table.source.name, prefer_comma)
        if spec is None:
            spec = inferred_spec(column, options.dayfirst, prefer_comma)
        specs.append(replace(spec, hidden=name in options.hide))
    return specs


def _uses_comma(specs: list[ColumnSpec]) -> bool:
    """Whether some column can only be read with a decimal comma: then so are doubtful ones."""
    return any(
        isinstance(spec.format, NumberFormat)
        and spec.format.decimal == ","
        and not spec.format.ambiguous
        for spec in specs
    )


def _without_duplicates(
    table: Table, specs: list[ColumnSpec], options: ColumnOptions
) -> tuple[ColumnSpec, ...]:
    """Take out columns that hold the values of an earlier used one, unless declared."""
    first: dict[object, str] = {}
    kept = []
    for spec in specs:
        if spec.used:
            earlier = first.setdefault(_content(table.column(spec.name), spec), spec.name)
            declared = spec.name in options.numeric or spec.name in options.categorical
            if earlier != spec.name and not declared:
                why = f"the same values as column {quoted(earlier)}"
                spec = replace(spec, role="duplicate", why=why, format=None, notes=())
        kept.append(spec)
    return tuple(kept)


def _content(column: Column, spec: ColumnSpec) -> object:
    """Return what two columns share that hold the same values."""
    if spec.format is None:
        levels = column.levels
        return "text", levels.codes.tobytes(), tuple(levels.texts)
    # No minus zero.
    values = column.read(spec.format).values + 0.0
    return spec.role, hashlib.sha256(values.tobytes()).digest()
