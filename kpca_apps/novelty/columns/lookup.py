"""Resolve the column names of options, with the same rules in Python and on the command line.

A name matches the column of that name, its original header, and spellings that look the same
(`name_key`). Most options select one column. `hide` selects every match, and every column whose
cells contain records with a field of that name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import polars as pl

from kpca_apps.errors import ConfigError, OptionError, flag_of
from kpca_apps.names import listed, name_key, quoted, suggest
from kpca_apps.novelty.columns.parts import AnyTable, Execution, each_part
from kpca_apps.novelty.columns.plan import ColumnOptions, ColumnPlan, is_named_as_identifier
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table

Keys = Mapping[str, Collection[str]]  # names by which each column can be requested

_RECORD = r"[\[{]"
_AMOUNT = r"^[+-]?\d[\d.,' ]*[.,]\d{1,2}$"
# A field name in JSON (also nested in a JSON string), Python or DuckDB notation.
_FIELD = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\+"[^"\\]*\\+"|[\p{L}\p{N}_$.-]+)\s*[:=]"""


def resolve_columns(
    options: ColumnOptions,
    table: AnyTable,
    execution: Execution | None = None,
    *,
    reference: AnyTable | None = None,
    also_hidden: Iterable[str] = (),
) -> ColumnOptions:
    """Return options with the column names of a table; a second call changes nothing.

    With a `reference`, options may name columns that only the reference has, but `by` must be in
    both tables. Names in `also_hidden` need not match. ConfigError for a name that matches no
    column, or several, and for two uses of a column.
    """
    where, own = table.source.name, _keys_of(table)
    every, both = own, own
    hide = _hidden([*options.hide, *also_hidden], table, own, execution)
    for name in options.hide:
        if not hide[name]:
            raise _unknown("hide", name, own, where)
    hidden = [column for found in hide.values() for column in found]
    if reference is not None:
        of_reference = _keys_of(reference)
        every, both = {**of_reference, **own}, {n: own[n] for n in own if n in of_reference}
        for found in _hidden(options.hide, reference, of_reference, execution).values():
            hidden += found
    chosen, taken = dict[str, Any](), dict[str, str]()
    keys = {"label": own, "id": own, "by": both}
    for option in ("label", "id", "exclude", "categorical", "numeric", "by"):
        given = getattr(options, option)
        names = given if isinstance(given, tuple) else [given] * (given is not None)
        found = [_choose(option, name, keys.get(option, every), where) for name in names]
        chosen[option] = tuple(dict.fromkeys(found))
        for name in found:
            if taken.setdefault(name, option) != option:
                raise ConfigError(
                    f"{where}: column {quoted(name)} is given to both {flag_of(taken[name])} and "
                    f"{flag_of(option)}; keep one of them."
                )
    label, id = (next(iter(chosen.pop(option)), None) for option in ("label", "id"))
    return replace(options, label=label, id=id, hide=tuple(dict.fromkeys(hidden)), **chosen)


def _keys_of(table: AnyTable) -> Keys:
    renamed = dict(table.source.renamed)
    return {name: {name_key(name), name_key(renamed.get(name, name))} for name in table.columns}


def _choose(option: str, name: str, keys: Keys, where: str) -> str:
    found = [name] if name in keys else [own for own in keys if name_key(name) in keys[own]]
    if len(found) > 1:
        what = f"names a column {quoted(name)}, which may be any of {listed(found)}"
        raise OptionError(option, f"{what}: write it as it stands there.", where)
    if not found:
        raise _unknown(option, name, keys, where)
    return found[0]


def _unknown(option: str, name: str, names: Iterable[str], where: str) -> OptionError:
    what = f"names a column {quoted(name)} that the table does not have.{suggest(name, names)}"
    return OptionError(option, what, where)


def _hidden(
    names: Iterable[str], table: AnyTable, keys: Keys, execution: Execution | None
) -> dict[str, list[str]]:
    wanted, fields = {name: name_key(name) for name in names}, dict[str, set[str]]()
    work = execution or Execution()
    for part in each_part(table, "Looking for records", _fields, work) if wanted else ():
        for column, found in part.items():
            fields.setdefault(column, set()).update(found)
    return {
        name: [
            own
            for own in keys
            if name == own or key in keys[own] or _is_field(key, keys[own], fields.get(own, ()))
        ]
        for name, key in wanted.items()
    }


def _is_field(key: str, columns: Collection[str], fields: Collection[str]) -> bool:
    """Return whether a key is ``field`` or ``column.field`` of a column's records."""
    return key in fields or (
        any(key.startswith(f"{column}.") for column in columns)
        and any(key.endswith(f".{field}") for field in fields)
    )


def _fields(table: Table) -> dict[str, set[str]]:
    found = {}
    for cells in table.frame.iter_columns():
        if cells.dtype == pl.String:
            records = cells.filter(cells.str.contains(_RECORD).fill_null(False))
            names = records.str.extract_all(_FIELD).explode().drop_nulls().unique()
            found[cells.name] = {name_key(_field_name(name)) for name in names}
    return found


def _field_name(written: str) -> str:
    """Parse a field name that ends with ":" or "=", with or without quotes."""
    text = written.rstrip(":= \t\r\n")
    with suppress(ValueError):
        return str(json.loads(text, strict=False))
    return re.sub(r"\\(.)", r"\1", text).strip("'\"")


def naming_identifier(table: Table, index: IntArray, plan: ColumnPlan) -> str | None:
    """Return the column that identifies rows: a primary key, or an identifier without repeats."""
    if (key := table.source.key_column) is not None and key not in plan.hidden:
        return key
    names = []
    for spec in plan.specs:
        if spec.role != "identifier" or spec.hidden or spec.name not in table.frame.columns:
            continue
        texts = table.column[spec.name].texts
        if texts.null_count() or texts.n_unique() < texts.len():
            continue
        # Amounts with mixed decimal marks are read as text, but do not identify rows.
        if 2 * texts.str.contains(_AMOUNT).sum() > texts.len():
            continue
        counted = texts.str.to_integer(strict=False)
        numbers = (pl.Series(index + first) for first in (0, 1))
        if all((counted != number).fill_null(True).any() for number in numbers):
            names.append(spec.name)
    return next(filter(is_named_as_identifier, names), names[0] if names else None)
