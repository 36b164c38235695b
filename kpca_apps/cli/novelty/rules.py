"""The work and the output of ``kpca novelty rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpca_apps.cli.console import Console, column_lines, wrapped
from kpca_apps.cli.novelty.documents import RULE_CHECK, CheckedRule
from kpca_apps.cli.novelty.junit import RuleCase, check_junit, write_junit
from kpca_apps.cli.novelty.lines import say_warnings
from kpca_apps.cli.novelty.run import print_plan, running
from kpca_apps.cli.results import near
from kpca_apps.errors import ConfigError, OptionError
from kpca_apps.names import one_line, safe_stem
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.relations.exports.pandera_schema import rules_as_pandera
from kpca_apps.novelty.relations.exports.sql import rules_as_dqx, rules_as_sql
from kpca_apps.novelty.relations.rule import (
    Determines,
    Equal,
    HeldRule,
    HeldRules,
    Linear,
    Order,
    Product,
    without_values,
)
from kpca_apps.novelty.relations.rule_file import TITLE, check_target, read_rules, rules_to_json
from kpca_apps.novelty.relations.sentences import broken_in, phrase, sentence
from kpca_apps.novelty.relations.table_rules import (
    BrokenRow,
    check_table_rules,
    find_table_rules,
    listed_rows,
)
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.options import NoveltyOptions, RuleFormat, check_limits
from kpca_apps.report import result_json
from kpca_apps.system.files.output import atomic_write

_BY_SUFFIX: dict[str, RuleFormat] = {
    ".json": "json", ".sql": "sql", ".py": "pandera", ".yaml": "dqx", ".yml": "dqx",
}  # fmt: skip
_EXPORTS: dict[str, Callable[[HeldRules], str]] = {
    "json": rules_to_json,
    "sql": lambda rules: rules_as_sql(rules, safe_stem(rules.table)),
    "pandera": rules_as_pandera,
    "dqx": rules_as_dqx,
}
# `find` lists at most FIRST rows that break a rule, and `run_check` at most ROWS. `run_check` also
# lists at most FIRST rules that it could not check in every row.
FIRST = 3
ROWS = 10
_OF_VALUES = (Equal, Order, Linear, Product, Determines)  # rules that missing values cannot break
_CELL = 24  # maximum number of characters of a cell
_HANGING = "    "
_OF_FINDING = ("exclude", "categorical", "numeric", "dayfirst")  # options refused with --rules


@dataclass(frozen=True)
class Target:
    """The file or output to which rules are written, and their format."""

    format: RuleFormat
    out: str | None
    as_json: bool

    @classmethod
    def of(
        cls, options: NoveltyOptions, out: str | None, format: RuleFormat | None, known: Path | None
    ) -> Target:
        """Return the target that the options describe; raise ConfigError if they conflict."""
        check_limits(ScreeningOptions(seed=options.seed, jobs=options.jobs))
        suffix = "" if out is None else Path(out).suffix.lower()
        target = cls(format or _BY_SUFFIX.get(suffix, "text"), out, options.json)
        if options.json and out is None and target.format not in ("text", "json"):
            raise ConfigError(
                f"--json and --format {target.format} both print to stdout: leave one out, or name "
                "a file with --out"
            )
        if known is not None:
            if out is not None and Path(out).resolve() == known.resolve():
                raise OptionError("out", "is the file of rules to check; choose another file")
            for name in _OF_FINDING:
                if getattr(options, name) not in (None, []):
                    raise OptionError(name, "has no effect with --rules: leave one of them out")
        elif options.junit is not None:
            raise OptionError("junit", "needs rules to check: name them with --rules")
        if out is not None and not options.dry_run:
            check_target(out, force=options.force, option="--out")
        check_junit(options, out)
        return target

    def write(self, console: Console, rules: HeldRules, text: list[str], as_json: str) -> None:
        """Write rules to the file or stdout, in the format of the target."""
        if self.format == "text":
            content = "".join(f"{line}\n" for line in [f"{TITLE} {rules.table}", "", *text])
        else:
            content = _EXPORTS[self.format](rules)
        if self.out is not None:
            with atomic_write(self.out) as file:
                file.write(content.encode("utf-8"))
        if self.as_json:
            console.data(as_json)
        elif self.out is not None:
            console.data_path(near(Path(self.out)))
        elif self.format == "text":
            console.data_lines(text)
        else:
            console.data(content)


def find(table: list[str], options: NoveltyOptions, target: Target) -> None:
    """Find the rules of a table, and print or write them."""
    chosen = ColumnOptions(**options.given(ColumnOptions))
    with running(options) as run:
        rows = run.read(table)
        if options.dry_run:
            print_plan(run, rows, ScreeningOptions(columns=chosen, seed=options.seed))
            return
        with run.working("Finding rules", rows):
            found = find_table_rules(rows, chosen, seed=options.seed, execution=run.execution)
            first = listed_rows(found, rows, FIRST, run.execution)
    console, name = run.console, rows.source.short_name
    n = len(found.rules)
    none = f"No rule {'without hidden values ' * bool(found.hidden)}holds"
    noun = "1 rule holds" if n == 1 else f"{n:,} rules hold" if n else none
    console.say(f"{noun} in nearly all of the {rows.source.n_rows:,} rows of {name}.")
    say_warnings(console, found.notes)
    lines = found_lines(found, first)
    if target.out is not None and not target.as_json:
        for line in lines:
            console.say(line)
    target.write(console, found, lines, rules_to_json(found))


def run_check(path: Path, table: list[str], options: NoveltyOptions, target: Target) -> bool:
    """Check a table against the rules of a file; return whether any row breaks a rule."""
    known = read_rules(path)
    if options.dry_run:
        Console(options.quiet).data_lines(reading_lines(known))
        return False
    with running(options) as run:
        rows = run.read(table)
        shown = ColumnOptions(id=options.id, hide=tuple(options.hide or ()))
        with run.working("Checking rules", rows):
            checked, broken = check_table_rules(known, rows, shown, run.execution)
    console, name = run.console, rows.source.short_name
    n_broken, n = sum(held.n_broken > 0 for held in checked.rules), len(checked.rules)
    verb, noun = "is" if n_broken == 1 else "are", "rule" if n == 1 else "rules"
    console.say(f"{n_broken:,} of {n:,} {noun} of {near(path)} {verb} broken in {name}.")
    for line in unjudged_lines(checked):
        console.say(line)
    say_warnings(console, checked.notes)
    text = broken_lines(checked, broken)
    if options.junit is not None:
        write_junit(options.junit, checked.table, _cases(checked, broken))
    found = result_json.to_json(RULE_CHECK, check_result(checked, broken))
    target.write(console, without_values(checked), text, found)
    return n_broken > 0


def found_lines(rules: HeldRules, rows: tuple[tuple[BrokenRow, ...], ...]) -> list[str]:
    """Return a line for each rule that was found, with the first rows that break it."""
    lines = []
    for held, first in zip(rules.rules, rows, strict=True):
        text = sentence(held, rules.by_name)
        if first:
            more = held.n_broken - len(first)
            text += f"; not in {_places(first)}{f' and {more:,} more' * (more > 0)}"
        lines += wrapped(text, hanging=_HANGING)
    return lines


def unjudged_lines(rules: HeldRules) -> list[str]:
    """Return lines on rules that do not apply to some rows because values are missing."""
    lacking = [
        held
        for held in rules.rules
        if isinstance(held.rule, _OF_VALUES) and held.n_rows < rules.n_rows
    ]
    lacking.sort(key=lambda held: held.n_rows)
    lines = []
    for held in lacking[:FIRST]:
        left = rules.n_rows - held.n_rows
        noun = "row, which lacks" if left == 1 else "rows, which lack"
        rule = phrase(held.rule, rules.by_name, rules.hidden)
        lines += wrapped(f"Not checked in {left:,} {noun} a value: {rule}", hanging=_HANGING)
    if (more := len(lacking) - FIRST) > 0:
        lines.append(f"  ... and {more:,} more rules that some rows lack a value of")
    return lines


def broken_lines(rules: HeldRules, rows: tuple[tuple[BrokenRow, ...], ...]) -> list[str]:
    """Return lines for the rules that a table breaks, with the rows and their cells."""
    lines = []
    for held, found in zip(rules.rules, rows, strict=True):
        if not held.n_broken:
            continue
        rule = phrase(held.rule, rules.by_name, rules.hidden)
        lines += wrapped(f"{rule}: {broken_in(held)}", hanging=_HANGING)
        for row in _rows_lines(held, found[:ROWS]):
            lines += wrapped(row, "  ", _HANGING)
    return lines


def _rows_lines(held: HeldRule, rows: Sequence[BrokenRow]) -> Iterator[str]:
    """Yield a line for each row that breaks a rule, then the number of further rows."""
    for row in rows:
        cells = (
            f"{one_line(name, _CELL)} {one_line(cell, _CELL) or 'missing'}"
            for name, cell in zip(held.rule.columns, row.cells, strict=True)
        )
        name = f" ({one_line(row.id, _CELL)})" if row.id else ""
        yield f"{_place(row)}{name}: {', '.join(cells)}"
    if (left := held.n_broken - len(rows)) > 0:
        yield f"... and {left:,} more"


def _cases(rules: HeldRules, rows: tuple[tuple[BrokenRow, ...], ...]) -> Iterator[RuleCase]:
    for held, found in zip(rules.rules, rows, strict=True):
        name = phrase(held.rule, rules.by_name, rules.hidden)
        yield RuleCase(name, held.n_rows, held.n_broken, "\n".join(_rows_lines(held, found)))


def check_result(rules: HeldRules, rows: tuple[tuple[BrokenRow, ...], ...]) -> dict[str, Any]:
    """Return the content of the JSON of a check."""
    return {
        "table": rules.table,
        "n_rows": rules.n_rows,
        "n_rules": len(rules.rules),
        "n_broken_rules": sum(held.n_broken > 0 for held in rules.rules),
        "rules": [
            CheckedRule(
                phrase(held.rule, rules.by_name, rules.hidden),
                held.rule.columns,
                held.n_rows,
                held.n_broken,
                found,
            )
            for held, found in zip(rules.rules, rows, strict=True)
        ],
    }


def reading_lines(rules: HeldRules) -> list[str]:
    """Return the lines of a table: each column's name, its kind (such as dates) and notation."""
    rows = [("column", "taken as", "how it is written")]
    for column in rules.columns:
        kind = "dates" if column.dates else "numbers" if column.numbers else "text"
        how = column.format.describe() if column.format else ""
        rows.append((one_line(column.name, 40), kind, one_line(how, 60)))
    return column_lines(rows)


def _places(rows: Sequence[BrokenRow]) -> str:
    if len(rows) == 1 or any(row.file for row in rows):
        return ", ".join(map(_place, rows))
    numbers = [row.row if row.line is None else row.line for row in rows]
    noun = "rows" if rows[0].line is None else "lines"
    return f"{noun} {', '.join(f'{number:,}' for number in numbers)}"


def _place(row: BrokenRow) -> str:
    place = f"row {row.row:,}" if row.line is None else f"line {row.line:,}"
    return f"{place} of {one_line(row.file, _CELL)}" if row.file else place
