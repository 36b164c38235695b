"""Rules as a JSON file, to edit, and to check other tables against.

The file holds the formats of the columns, and the rules with their counts. Counts may be omitted
in a file written by hand. Files are validated when read and cannot run code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl

from kpca_apps.errors import InputError, about, opening
from kpca_apps.names import one_line, quoted, visible_json
from kpca_apps.novelty.relations import rule as kinds
from kpca_apps.novelty.relations.checking import code_forms
from kpca_apps.novelty.relations.rule import AnyRule, HeldRule, HeldRules, RuleColumn
from kpca_apps.novelty.relations.sentences import sentence
from kpca_apps.system.files.output import atomic_write, require_replaceable
from kpca_apps.system.files.texts import marked_encoding, read_text
from kpca_apps.tables.values import DateFormat, NumberFormat

FORMAT = "kpca-rules"
TITLE = "Rules between the columns of"  # in the first line of rule files of all formats but JSON
TEST_CASES = "test cases"
_XML = "<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\""
# First characters of files of rules and of test cases, other than JSON.
_TITLES = {
    "rules": tuple(f"{mark}{TITLE}" for mark in ("", "-- ", "# ")),
    TEST_CASES: (f"{_XML}{TITLE}",),
}
_MARK = f'"format": "{FORMAT}"'
_FIRST_BYTES = 200
FORMAT_VERSION = 1
LARGEST = 20_000_000  # maximum size of a file, in bytes
_MOST_RULES = 10_000
_WRITE_ONE = "write one with: kpca novelty rules TABLE --out rules.json"
_OF_NUMBERS = kinds.Order | kinds.Linear | kinds.Product | kinds.Sorted | kinds.Within


class _Record(HeldRule, frozen=True, forbid_unknown_fields=True):
    """A rule in a file, with a sentence for readers."""

    says: str = ""


class _Head(msgspec.Struct, frozen=True):
    """The header of a rule file, the same in every version of the format."""

    format: str
    format_version: int


class _Document(_Head, frozen=True, forbid_unknown_fields=True):
    """A rule file: header, columns and rules."""

    columns: tuple[RuleColumn, ...]
    rules: tuple[_Record, ...]
    table: str = ""
    n_rows: Annotated[int, msgspec.Meta(ge=0)] = 0
    id: str | None = None


def rules_to_json(rules: HeldRules) -> str:
    """Write rules as JSON; equal rules give equal bytes."""
    records = tuple(
        _Record(of.rule, of.n_rows, of.n_broken, of.broken, sentence(of, rules.by_name))
        for of in rules.rules
    )
    of_table = rules.table, rules.n_rows, rules.id
    document = _Document(FORMAT, FORMAT_VERSION, rules.columns, records, *of_table)
    plain = msgspec.to_builtins(document)
    for column in plain["columns"]:
        for kind, standard in (("numbers", NumberFormat()), ("dates", DateFormat())):
            if kind in column:  # default values are omitted
                usual = msgspec.to_builtins(standard)
                column[kind] = {k: x for k, x in column[kind].items() if x != usual[k]}
    return visible_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()) + "\n"


def rules_schema() -> dict[str, Any]:
    """Return the JSON schema of a file of rules."""
    (_,), named = msgspec.json.schema_components([_Document], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = named.pop(_Document.__name__)
    constants = {"format": FORMAT, "format_version": FORMAT_VERSION}
    schema["properties"] |= {key: {"const": value} for key, value in constants.items()}
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema | {"$defs": named}))
    return made


def save_rules(rules: HeldRules, path: str | Path) -> None:
    """Write rules to a file atomically; only a file of rules is replaced."""
    check_target(path, force=True)
    with atomic_write(path) as file:
        file.write(rules_to_json(rules).encode("utf-8"))


def check_target(
    path: str | Path, *, force: bool = False, holds: str = "rules", option: str = ""
) -> None:
    """Refuse a path at which rules must not be written.

    With `force`, rules replace a file of rules in any format, and test cases replace test cases.
    """

    def is_ours(path: Path) -> bool:
        with path.open("rb") as file:
            data = file.read(_FIRST_BYTES)
        head = data.decode(marked_encoding(data)[0], "ignore")
        is_json = holds == "rules" and head.startswith("{") and _MARK in head
        return is_json or head.startswith(_TITLES[holds])

    require_replaceable(path, f"a file of {holds}", is_ours, force=force, option=option)


def read_rules(path: str | Path) -> HeldRules:
    """Read a file of rules; InputError names the file and the fault."""
    with about(path), opening(path, Path(path)):
        text = read_text(Path(path), "a file of rules", LARGEST)
    try:
        return _rules_of(text)
    except (ValueError, RecursionError) as error:
        reason = one_line(" ".join(str(error).split()), 200)
        raise InputError(f"not a usable file of rules ({reason}); {_WRITE_ONE}", path) from None


def _rules_of(text: str) -> HeldRules:
    head = msgspec.json.decode(text, type=_Head)
    if head.format != FORMAT:
        raise ValueError("it was not written by this toolkit")
    if head.format_version != FORMAT_VERSION:
        raise ValueError(
            f"format {head.format_version}, where this version reads format {FORMAT_VERSION}"
        )
    read = msgspec.json.decode(text, type=_Document)
    held = tuple(HeldRule(of.rule, of.n_rows, of.n_broken, of.broken) for of in read.rules)
    require_sound(read.columns, held)
    named = {name for record in read.rules for name in record.rule.columns}
    columns = tuple(column for column in read.columns if column.name in named)
    return HeldRules(read.table, read.n_rows, columns, held, read.id)


def require_sound(columns: Sequence[RuleColumn], held: Sequence[HeldRule]) -> None:
    """Raise ValueError for columns and rules that cannot come from a table."""
    if len(held) > _MOST_RULES:
        raise ValueError(f"{len(held):,} rules, of at most {_MOST_RULES:,}")
    by_name = {column.name: column for column in columns}
    if len(by_name) != len(columns):
        raise ValueError("two columns of one name")
    for column in columns:
        if column.numbers is not None and column.dates is not None:
            raise ValueError(f"column {quoted(column.name)} holds numbers and dates")
        if column.numbers is not None:
            try:
                column.numbers.validate()
            except ValueError as error:
                raise ValueError(f"column {quoted(column.name)}: {error}") from None
    for number, one in enumerate(held, 1):
        try:
            _check_rule(one.rule, by_name)
            if not 0 <= len(one.broken) <= one.n_broken <= one.n_rows:
                raise ValueError("more rows break it than it applies to")
        except ValueError as error:
            raise ValueError(f"rule {number:,}: {error}") from None


def _check_rule(rule: AnyRule, columns: Mapping[str, RuleColumn]) -> None:
    """Raise ValueError for a rule that cannot be checked, or that is always true."""
    if len({*rule.columns}) != len(rule.columns):
        raise ValueError("it names a column twice")
    for place, name in enumerate(rule.columns):
        if name not in columns:
            raise ValueError(f"its column {quoted(name)} is not among the columns")
        is_number = isinstance(rule, kinds.PositiveOnlyIf) and place == 0
        if (is_number or isinstance(rule, _OF_NUMBERS)) and columns[name].format is None:
            raise ValueError(f"its column {quoted(name)} holds no numbers or dates")
    match rule:
        case kinds.Linear() if len(rule.coefficients) != len(rule.columns) - 1:
            raise ValueError("one coefficient is needed for each column but the first")
        case kinds.Product() if rule.per and rule.exponents[-1:] != (1.0,):
            raise ValueError("its rate has another exponent than 1")
        case kinds.Product() if rule.per and not math.isfinite(1 / rule.per):
            raise ValueError("its rate is too near 0")
        case kinds.Product() if len(rule.exponents) != len(rule.columns) - 1:
            raise ValueError("one exponent is needed for each column but the first")
        case kinds.Code() if not rule.form or code_forms(pl.Series([rule.form]))[0] != rule.form:
            raise ValueError("its form has letters other than A, or digits other than 9")
        case kinds.Within():
            low = -math.inf if rule.low is None else rule.low
            high = math.inf if rule.high is None else rule.high
            if not low <= high or (low, high) == (-math.inf, math.inf):
                raise ValueError("its bounds allow nothing, or everything")
