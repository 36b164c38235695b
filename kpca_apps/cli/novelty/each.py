"""``kpca novelty screen --each``: a report for each of many tables, and an index."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from kpca_apps.cli.commands import reproduce
from kpca_apps.cli.console import column_lines, say_line
from kpca_apps.cli.novelty.run import (
    Run,
    open_folder,
    print_plan,
    refuse_shared_input,
    refuse_too_wide,
    running,
    write_screening,
)
from kpca_apps.cli.options import ROWS_FLAGGED, SOME_FAILED
from kpca_apps.cli.results import REPORT_FILE, near, write_result
from kpca_apps.errors import ConfigError, KpcaError, storage_error
from kpca_apps.names import one_line, safe_stem
from kpca_apps.novelty.accepted import Marks
from kpca_apps.novelty.columns.parts import AnyTable
from kpca_apps.novelty.compare.diff import diff_runs
from kpca_apps.novelty.redact import masked
from kpca_apps.novelty.result import RunInfo, ScreenedTable, ScreenedTables, ScreeningResult
from kpca_apps.novelty.run import screen
from kpca_apps.novelty.screening.model import RULES, ScreeningOptions, library_versions
from kpca_apps.options import NoveltyOptions
from kpca_apps.report.novelty.page import render_index
from kpca_apps.report.novelty.text import index_headline, oddest_row
from kpca_apps.report.result_json import result_to_json
from kpca_apps.report.text import count, number, plural
from kpca_apps.system.files.output import OutputFolder
from kpca_apps.system.stores.addresses import AnyPath, StorePath
from kpca_apps.tables.opening import expand_each
from kpca_apps.tables.table import Table

INDEX, INDEX_DATA = "index.html", "index.json"
RESULT = "result.json"
# Names that no folder of a table may have.
_TAKEN = (INDEX, INDEX_DATA, "run.json")


@dataclass(frozen=True)
class _Work:
    context: typer.Context
    chosen: ScreeningOptions
    reference: AnyTable | None
    judged: list[Table | Marks]


def screen_each(
    context: typer.Context,
    tables: list[str],
    options: NoveltyOptions,
    chosen: ScreeningOptions,
    reference: str | None,
) -> int:
    """Screen tables one after another, and write an index; return the exit code."""
    if options.marks is not None:
        raise ConfigError("--marks belongs to the report of one table: leave out --marks or --each")
    if options.dry_run and options.json:
        raise ConfigError("--dry-run with --each prints text only: leave out --json")
    paths = [str(path) for path in expand_each(tables)]
    refuse_shared_input(reference, options.accept, *paths)
    folder = open_folder(options, "novelty", tables, reference)
    with running(options) as run:
        work = _Work(context, chosen, run.read_reference(reference), run.read_reviewed())
        run.clock.lap("reading")
        if options.dry_run:
            return SOME_FAILED if _print_plans(run, work, paths) else 0
        with folder as building:
            made = [
                _one(run, work, path, OutputFolder(building / name), folder.path / name)
                for path, name in zip(paths, _folders(paths), strict=True)
            ]
            run.clock.lap("tables")
            rules = {name: getattr(options, name) for name in RULES}
            given = {name: value for name, value in rules.items() if value is not None}
            index = ScreenedTables(
                tuple(made),
                RunInfo(
                    {**given, "against a reference": reference is not None, "tables": len(paths)},
                    library_versions(),
                    command=reproduce(context, masked(context.params, None), replacing=True),
                ),
            )
            pages = [(INDEX, render_index(index))]
            write_result(building, index, pages, {}, run.clock, data=INDEX_DATA)
    _say(run, index, near(folder.path))
    if index.failed:
        return SOME_FAILED
    is_flagged = any(table.n_flagged for table in index.screened)
    return ROWS_FLAGGED if options.fail_on_flagged and is_flagged else 0


def _folders(paths: Sequence[str]) -> list[str]:
    """Return a folder name for each table; the names are distinct even if case is ignored."""
    taken, found = {name.casefold() for name in _TAKEN}, list[str]()
    for path in paths:
        stem = name = safe_stem(path)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}_{number}"
        taken.add(name.casefold())
        found.append(name)
    return found


def _one(run: Run, work: _Work, path: str, folder: OutputFolder, before: AnyPath) -> ScreenedTable:
    name = path if path == "-" else Path(path).name
    try:
        result = _screened(run.for_one(), work, path, folder, before)
    except KpcaError as error:
        if storage_error(error, path) is not None:
            raise  # a full disk ends the command, and the earlier results stay
        say_line(f"failed: {error}")
        # Leave out the path in the error.
        return ScreenedTable(name, "", error=str(error.args[0]))
    top = result.ranked[0] if result.ranked else None
    found = ScreenedTable(
        result.source.name,
        folder.path.name,
        n_rows=result.n_rows,
        n_flagged=result.n_flagged,
        n_odd_cells=result.findings.n_odd_cells,
        oddest=oddest_row(result),
    )
    if top is not None and top.rarity is not None:
        found = replace(found, rarity=top.rarity.words, rarity_share=top.rarity.share)
    elif top is not None and top.p_value is not None:
        found = replace(found, rarity=number(top.p_value), rarity_share=top.p_value)
    return _compared(run, found, before, folder.path)


def _screened(
    run: Run, work: _Work, path: str, folder: OutputFolder, written: AnyPath
) -> ScreeningResult:
    """Screen one table; its report shows a command for this table alone."""
    own = copy(work.context)
    own.params = {**own.params, "table": [path], "out": near(written), "each": False}
    rows = run.read([path])
    refuse_too_wide(run.options, rows)
    run.clock.lap("reading")
    with run.working(f"Screening {path}", rows, work.reference):
        result, model = screen(
            rows,
            reference=work.reference,
            accept=work.judged,
            options=work.chosen,
            execution=run.execution,
        )
    run.clock.lap("screening")
    return write_screening(run, own, folder, rows, result, model, save=True)


def _compared(run: Run, found: ScreenedTable, before: AnyPath, now: Path) -> ScreenedTable:
    if isinstance(before, StorePath) or not (before / RESULT).is_file():
        return found
    try:
        diff = diff_runs(before, now, execution=run.execution)
    except KpcaError as error:
        why = str(error.args[0])
        # Replace paths of this machine by words.
        for folder, name in ((before, "the run before"), (now, "this run")):
            why = why.replace(one_line(str(folder), 200), name)
        return replace(found, not_compared=why)
    return replace(
        found,
        before=diff.old,
        n_new=len(diff.appeared),
        n_removed=len(diff.removed),
        moved=diff.moved,
        hidden_columns=diff.hidden_columns,
    )


def _print_plans(run: Run, work: _Work, paths: Sequence[str]) -> bool:
    some_failed = False
    for path in paths:
        try:
            rows = run.read([path])
            run.console.data_lines([f"{path}:"])
            print_plan(run, work.reference or rows, work.chosen)
        except KpcaError as error:
            say_line(f"failed: {error}")
            some_failed = True
    return some_failed


def _say(run: Run, index: ScreenedTables, folder: AnyPath) -> None:
    console = run.console
    console.say(index_headline(index))
    for table in index.screened:
        for moved in table.moved[:1]:
            left = len(table.moved) - 1
            more = f", and {plural(left, 'more column')}" if left else ""
            name, column = one_line(table.name), one_line(moved.column)
            console.say(f"{name}: {column} moved ({moved.words}){more}.")
        if table.not_compared:
            console.say(f"{one_line(table.name)} is not compared: {table.not_compared}")
    if run.options.json:
        console.data(result_to_json(index))
        return
    rows = [["table", "rows", "flagged", "odd cells", "report"]]
    for table in index.tables:
        numbers = [count(n) for n in (table.n_rows, table.n_flagged, table.n_odd_cells)]
        where = str(folder / table.folder / REPORT_FILE)
        last = [*numbers, where] if table.folder else ["", "", "", "failed"]
        rows.append([one_line(table.name, 40), *last])
    console.data_lines(column_lines([tuple(row) for row in rows]))
    console.data_path(folder / INDEX)
