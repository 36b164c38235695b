"""A run of a ``kpca novelty`` command: its inputs, workers and result folder."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path
from types import SimpleNamespace

import typer
from joblib import cpu_count

from kpca_apps.cli.commands import next_steps, reproduce
from kpca_apps.cli.console import Console, row_progress
from kpca_apps.cli.novelty.documents import COLUMN_PLAN
from kpca_apps.cli.novelty.junit import check_junit, screening_cases, write_junit
from kpca_apps.cli.novelty.lines import SENT, held, plan_lines, say_findings
from kpca_apps.cli.results import REPORT_FILE, Clock, near, print_result, write_result
from kpca_apps.cli.workers import quiet_workers
from kpca_apps.errors import ConfigError, KpcaError, OptionError, StoppedError, opening
from kpca_apps.names import one_line, safe_stem
from kpca_apps.novelty.accepted import Marks, read_marks
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.parts import AnyTable, Execution, draw_sample
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.novelty.redact import redact_source, visible_notes
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.screening.model import NoveltyModel, ScreeningOptions
from kpca_apps.options import OF_FILES, READING, LayoutName, NoveltyOptions, check_limits
from kpca_apps.system.files.output import ResultFolder
from kpca_apps.system.finished import work_folder
from kpca_apps.system.memory import available_bytes
from kpca_apps.system.stores.output import output_folder
from kpca_apps.system.workers import on_dask
from kpca_apps.tables.databases.address import database_address, is_database
from kpca_apps.tables.databases.writing import check_new_table, write_rows
from kpca_apps.tables.opening import expand, open_table, read_table
from kpca_apps.tables.read.uri import refuse_password, scheme_of
from kpca_apps.tables.table import PartedTable, Table

MODEL_FILE = "model.kpca"
TO_SEND = "to-send"
A_WORKER = 400_000_000  # bytes of memory of a worker


@dataclass
class Run:
    """The options, console, clock and workers of one run."""

    options: NoveltyOptions
    console: Console
    clock: Clock
    execution: Execution = field(init=False)
    _n_passes: Iterator[int] = field(default_factory=lambda: count(1))

    def for_one(self) -> Run:
        """Return a run with the same workers and a new clock."""
        one = Run(self.options, self.console, Clock())
        one.execution = replace(self.execution, progress=one.timed_pass)
        return one

    def read(self, paths: list[str], layout: LayoutName | None = None) -> AnyTable:
        """Open a table, with the model's `layout` unless the user chose one."""
        return self._read(paths, READING, layout)

    def read_reference(self, path: str | None) -> AnyTable | None:
        """Open the reference, if any."""
        if path is None:
            return None
        return self._read([path], [*OF_FILES, *["timeout"] * is_database(path)])

    def _read(
        self, paths: list[str], names: Sequence[str], layout: LayoutName | None = None
    ) -> AnyTable:
        for path in paths:
            refuse_password(path)
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        with self.console.stage(f"Reading {paths[0]}{more}"):
            given = {name: getattr(self.options, name) for name in names}
            return open_table(paths, **given | {"layout": given["layout"] or layout})

    def read_reviewed(self) -> list[Table | Marks]:
        """Read the rows that users accepted or marked in earlier runs."""
        accept, marks = self.options.accept, self.options.marks
        accepted = [] if accept is None else [read_table(accept)]
        return [*accepted, *([] if marks is None else [read_marks(marks)])]

    def working(self, text: str, *tables: AnyTable | None) -> AbstractContextManager[None]:
        """Show the elapsed time, except for tables in parts, which show progress."""
        if any(isinstance(table, PartedTable) for table in tables):
            return nullcontext()
        return self.console.stage(text)

    @contextmanager
    def timed_pass(self, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        """Show the progress of one pass over rows, and record its time."""
        number, began = next(self._n_passes), time.perf_counter()
        with row_progress(self.console, what, n_rows) as advance:
            yield advance
        self.clock.seconds[f"pass {number}, {what.lower()}"] = round(time.perf_counter() - began, 3)


@contextmanager
def running(options: NoveltyOptions) -> Iterator[Run]:
    """Start a run and its workers, which end with the block."""
    check_limits(SimpleNamespace(jobs=options.jobs))
    logging.getLogger("kpca_apps").setLevel(logging.ERROR if options.quiet else logging.NOTSET)
    elsewhere = on_dask(options.workers, options.scheduler)
    jobs = options.jobs
    if jobs is None and not elsewhere:
        jobs = max(1, min(int(cpu_count()), available_bytes() // A_WORKER))
    run = Run(options, Console(options.quiet), Clock())
    with (
        work_folder(options.work_dir, on_dask=elsewhere) as finished,
        quiet_workers(options.workers, jobs, options.scheduler) as workers,
    ):
        run.execution = Execution(workers, run.timed_pass, finished)
        yield run


def require_inputs(*paths: str | Path | None) -> None:
    """Raise InputError for a missing file, before an existing output is refused.

    In the other order, a script could mistake a missing input for a finished run.
    """
    for path in paths:
        if path is None or str(path) == "-" or scheme_of(path) is not None:
            continue
        for file in expand(path):
            with opening(str(file), Path(file)):
                Path(file).stat()


def open_folder(
    options: NoveltyOptions, application: str, table: list[str], *inputs: str | None
) -> ResultFolder:
    """Return the folder of a run; raise an error if it cannot be written.

    `inputs` are further files that the run reads.
    """
    if options.flagged == "xlsx":
        from kpca_apps.tables.write_excel import require_workbooks

        require_workbooks()
    require_inputs(*table, *inputs, options.accept, options.marks)
    is_one = len(table) == 1 and ("*" not in table[0] or scheme_of(table[0]) is not None)
    named = table[0].rstrip("/")
    if not is_one:
        shared = Path(os.path.commonpath([Path(path).absolute().parent for path in table]))
        named = Path(*takewhile(lambda part: "*" not in part, shared.parts)).name
    if is_database(named):
        named = database_address(named, options.table_name, options.query).name
    out = options.out or f"kpca-{application}-{safe_stem(named)}"
    folder = output_folder(out, force=options.force)
    if options.write_to is not None and (options.each or not is_one):
        raise OptionError("write_to", "needs a single table: name one, without --each.")
    if options.junit is not None and options.each:
        raise OptionError("junit", "takes the rules of one table: leave out --each.")
    if not options.dry_run:
        folder.check()
        check_junit(options, str(folder.path))
        if options.write_to is not None:
            check_new_table(table[0], options.write_to, force=options.force)
    return folder


def refuse_shared_input(*paths: str | None) -> None:
    """Raise ConfigError if several inputs are standard input."""
    if paths.count("-") > 1:
        raise ConfigError(
            "only one of TABLE, --reference and --accept can be - (standard input): name files for "
            "the others"
        )


def refuse_too_wide(options: NoveltyOptions, table: AnyTable) -> None:
    """Raise ConfigError if the flagged rows have too many columns for Excel."""
    if options.flagged == "xlsx":
        from kpca_apps.novelty.written_tables import N_ADDED
        from kpca_apps.tables.write_excel import require_columns

        require_columns(len(table.columns) + N_ADDED, table.source.name)


def print_plan(run: Run, table: AnyTable, options: ScreeningOptions) -> None:
    """Print the role of each column to stdout."""
    console = run.console
    columns = resolve_columns(options.columns, table, run.execution)
    sample = draw_sample(table, options.seed, run.execution)
    plan = infer_plan(sample.table, columns)
    if len(sample.index) < table.source.n_rows:
        console.say(
            f"The plan rests on {len(sample.index):,} rows drawn from {table.source.n_rows:,}."
        )
    of_files = redact_source(table.source, columns.hide).notes
    for note in visible_notes((*of_files, *plan.warnings), columns.hide):
        console.say(note)
    if run.options.json:
        console.data_json(COLUMN_PLAN, {"columns": plan.shown})
    else:
        console.data_lines(plan_lines(plan.shown))


def adjusted(run: Run, model: NoveltyModel, table: AnyTable) -> ScreeningOptions:
    """Return the options of a model, as changed by the options of the command."""
    from kpca_apps.novelty.run import inherit_options

    given = run.options
    columns = {"label": given.label, "id": given.id, "hide": tuple(given.hide or ())}
    return inherit_options(model, table, run.execution, **given.given(ScreeningOptions) | columns)


def finish(
    run: Run,
    context: typer.Context,
    folder: ResultFolder,
    table: AnyTable,
    result: ScreeningResult,
    model: NoveltyModel,
    *,
    save: bool,
) -> None:
    """Write the folder of a screening, with the model if `save` is set, and print the findings."""
    result = write_screening(run, context, folder, table, result, model, save=save)
    say_findings(run.console, result)
    if run.options.write_to is not None:
        _write_scores(run, context.params["table"][0], folder, table, result)
    if run.options.junit is not None:
        write_junit(run.options.junit, result.source.name, screening_cases(result))
    if save:
        run.console.say(f"{MODEL_FILE} {held(model)}")
    if run.options.to_send:
        run.console.say(SENT)
    print_result(run.console, folder.path, result, run.options.json)


def _write_scores(
    run: Run, uri: str, folder: ResultFolder, table: AnyTable, result: ScreeningResult
) -> None:
    from kpca_apps.novelty.written_tables import scores_of_rows

    name = str(run.options.write_to)
    state = f"{one_line(str(near(folder.path)), 200)} is written, and the table is not"
    try:
        with run.console.stage(f"Writing {one_line(name)}"):
            rows = scores_of_rows(table, result)
            n_written = write_rows(uri, name, rows, force=run.options.force)
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {state}: run again with --force") from None
    except KpcaError as error:
        message = f"{error.args[0]} The folder {state}: run again with --force"
        error.args = (message, *error.args[1:])
        raise
    run.console.say(f"The scores of {n_written:,} rows are in the table {one_line(name)}.")


def write_screening(
    run: Run,
    context: typer.Context,
    folder: ResultFolder,
    table: AnyTable,
    result: ScreeningResult,
    model: NoveltyModel,
    *,
    save: bool,
) -> ScreeningResult:
    """Write the folder of a screening, and return the result as written."""
    from kpca_apps.novelty.redact import masked
    from kpca_apps.novelty.screening.model import save_model
    from kpca_apps.novelty.written_tables import write_tables
    from kpca_apps.report.novelty.figures import ScreeningDrawings, screening_figures
    from kpca_apps.report.novelty.page import render_screening

    steps = next_steps(context, result, folder=folder.path.name, saved=MODEL_FILE if save else None)
    made = replace(
        result.run,
        command=reproduce(context, masked(context.params, result), replacing=True),
        next_steps=steps,
        flagged_file=f"flagged.{run.options.flagged}",
    )
    result = replace(result, run=made)
    with run.working("Writing", table), folder as building:
        notes = write_tables(
            building,
            table,
            result,
            model.encoder.plan,
            format=run.options.format,
            keep_hidden=run.options.keep_hidden,
            execution=run.execution,
        )
        made = replace(made, warnings=(*made.warnings, *notes))
        result = replace(result, run=made)
        if save:
            save_model(model, building / MODEL_FILE)
        run.clock.lap("scored table, flagged rows and model")
        drawn = ScreeningDrawings.of(result)
        pages: list[tuple[str, str | bytes]] = [(REPORT_FILE, render_screening(result, drawn))]
        figures = screening_figures(drawn)
        if run.options.to_send:
            params = masked(context.params, result, to_send=True)
            sent = replace(made, command=reproduce(context, params, replacing=True))
            page = render_screening(replace(result, run=sent), drawn, is_to_send=True)
            pages.append((f"{TO_SEND}/{REPORT_FILE}", page))
            pages += [(f"{TO_SEND}/figures/{name}.png", png) for name, png in figures.items()]
        if table.source.version:
            run.clock.details["version of the table"] = table.source.version
        write_result(building, result, pages, figures, run.clock)
    return result
