"""``kpca novelty``: screen, fit, score, explain, compare."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kpca_apps.cli.commands import next_steps, reproduce, without_label
from kpca_apps.cli.console import Console, row_progress
from kpca_apps.cli.options import command
from kpca_apps.cli.results import REPORT_FILE, Clock, print_result, write_result
from kpca_apps.errors import ConfigError
from kpca_apps.names import safe_stem
from kpca_apps.options import NoveltyOptions

if TYPE_CHECKING:
    from kpca_apps.novelty.columns.execution import Execution
    from kpca_apps.novelty.columns.parts import AnyTable
    from kpca_apps.novelty.result import ScreeningResult
    from kpca_apps.novelty.screening.model import NoveltyModel
    from kpca_apps.novelty.screening.options import ScreeningOptions
    from kpca_apps.system.output import OutputFolder
    from kpca_apps.tables.table import Table

MODEL_FILE = "model.kpca"
A_WORKER = 400_000_000  # bytes a worker takes while it reads a part of a table and works on it

app = typer.Typer(
    name="novelty",
    help="Find the outliers of a table, with reasons.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

TableArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE...",
        help="CSV or other delimited text, Parquet, Arrow, JSON or Excel, compressed or not. "
        "Several files, a folder or a pattern ('data/*.csv') are read as one table; - is stdin.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that screen or fit wrote.")
]


@dataclass
class Run:
    """One run of a command: what it was told, where it speaks, its clock and who works."""

    options: NoveltyOptions
    console: Console
    clock: Clock
    execution: Execution = field(init=False)
    _n_passes: Iterator[int] = field(default_factory=lambda: count(1))

    def read(self, paths: list[str]) -> AnyTable:
        """Read a table, or look at where the parts of a large one are."""
        from kpca_apps.tables.opening import open_table
        from kpca_apps.tables.read_options import ReadOptions

        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        with self.console.stage(f"Reading {paths[0]}{more}"):
            return open_table(paths, **self.options.given(ReadOptions))

    def read_accepted(self) -> Table | None:
        """Read the rows that were judged fine, if there are any."""
        from kpca_apps.tables.opening import read_table

        path = self.options.accept
        return None if path is None else read_table(path)

    def working(self, text: str, *tables: AnyTable | None) -> AbstractContextManager[None]:
        """Show that work is going on; for tables read in parts, their passes show it themselves."""
        from kpca_apps.tables.table import PartedTable

        if any(isinstance(table, PartedTable) for table in tables):
            return nullcontext()
        return self.console.stage(text)

    @contextmanager
    def timed_pass(self, what: str, n_rows: int) -> Iterator[Callable[[int], None]]:
        """Show how far one pass over rows is while the block runs, and take its time."""
        number, began = next(self._n_passes), time.perf_counter()
        with row_progress(self.console, what, n_rows) as advance:
            yield advance
        seconds = round(time.perf_counter() - began, 3)
        self.clock.seconds[f"pass {number}, {what.lower()}"] = seconds


@contextmanager
def running(options: NoveltyOptions) -> Iterator[Run]:
    """Start a run with who was asked to work; they are let go when the block ends."""
    from kpca_apps.novelty.columns.execution import Execution
    from kpca_apps.system.workers import workers_for

    jobs = options.jobs
    if options.workers == "dask" or options.scheduler is not None:
        # What its machinery has to say in passing is for those who run a cluster.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    else:
        jobs = jobs or _n_worthwhile()
    run = Run(options, Console(options.quiet), Clock())
    with workers_for(options.workers, jobs, options.scheduler) as workers:
        run.execution = Execution(workers, run.timed_pass)
        yield run


def _n_worthwhile() -> int:
    """Return how many workers the cores and the memory of this machine allow."""
    from joblib import cpu_count

    from kpca_apps.system.memory import available_bytes

    return max(1, min(int(cpu_count()), available_bytes() // A_WORKER))


def open_folder(options: NoveltyOptions, application: str, table: list[str]) -> OutputFolder:
    """Name the folder of a run, and refuse what cannot be written, before any work."""
    from kpca_apps.system.output import OutputFolder

    if options.flagged == "xlsx":
        from kpca_apps.tables.write_excel import require_workbooks

        require_workbooks()
    # Of several files, or a pattern, the folder they lie in.
    is_one = len(table) == 1 and "*" not in table[0]
    named = table[0] if is_one else Path(table[0]).absolute().parent.name
    out = options.out or f"kpca-{application}-{safe_stem(named)}"
    folder = OutputFolder(out, force=options.force)
    if not options.dry_run:
        folder.check()
    return folder


def refuse_too_wide(options: NoveltyOptions, table: AnyTable) -> None:
    """Refuse a workbook of flagged rows with more columns than Excel has, before any work."""
    if options.flagged == "xlsx":
        from kpca_apps.novelty.columns.parts import column_names
        from kpca_apps.novelty.written_tables import N_ADDED
        from kpca_apps.tables.write_excel import require_columns

        require_columns(len(column_names(table)) + N_ADDED, table.source.name)


def print_plan(run: Run, table: AnyTable, options: ScreeningOptions) -> None:
    """Print what every column becomes, as data."""
    from kpca_apps.cli.novelty.lines import plan_lines
    from kpca_apps.novelty.columns.parts import column_names, draw_sample
    from kpca_apps.novelty.columns.plan import check_options, infer_plan

    console = run.console
    check_options(options.columns, column_names(table), table.source.name)
    sample = draw_sample(table, options.seed, run.execution)
    plan = infer_plan(sample.table, options.columns)
    if len(sample.index) < table.source.n_rows:
        console.say(
            f"The plan rests on {len(sample.index):,} rows drawn from {table.source.n_rows:,}."
        )
    for note in (*table.source.notes, *plan.warnings):
        console.say(note)
    if run.options.json:
        console.data_json(plan.to_dict())
    else:
        console.data_lines(plan_lines(plan))


def adjusted(model: NoveltyModel, table: AnyTable, options: NoveltyOptions) -> ScreeningOptions:
    """Options of a model, changed by what the command was told."""
    from kpca_apps.novelty.screening.options import ScreeningOptions
    from kpca_apps.novelty.screening.run import inherit_options

    hide = tuple(options.hide or ()) or None
    columns = {"label": options.label, "id": options.id, "hide": hide}
    return inherit_options(model, table, **options.given(ScreeningOptions), **columns)


def finish(
    run: Run,
    context: typer.Context,
    folder: OutputFolder,
    table: AnyTable,
    result: ScreeningResult,
    model: NoveltyModel,
    *,
    save: bool,
) -> None:
    """Write the folder of a screening, the model in it if it is new, and say what was found."""
    from kpca_apps.cli.novelty.lines import held, say_findings
    from kpca_apps.novelty.screening.model import save_model
    from kpca_apps.novelty.written_tables import write_tables
    from kpca_apps.report.novelty.figures import ScreeningDrawings, screening_figures
    from kpca_apps.report.novelty.page import render_screening

    if hidden := without_label(context, result):
        result = replace(result, command=reproduce(context, replacing=True, **hidden))
    steps = next_steps(context, result, folder=folder.path.name, saved=MODEL_FILE if save else None)
    result = replace(result, next_steps=steps, flagged_file=f"flagged.{run.options.flagged}")
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
        result = replace(result, warnings=(*result.warnings, *notes))
        if save:
            save_model(model, building / MODEL_FILE)
        run.clock.lap("scored table, flagged rows and model")
        drawn = ScreeningDrawings.of(result)
        pages = [(REPORT_FILE, render_screening(result, drawn))]
        write_result(building, result, pages, screening_figures(drawn), run.clock)
    say_findings(run.console, result)
    if save:
        run.console.say(f"{MODEL_FILE} {held(model)}")
    print_result(run.console, folder.path, result, run.options.json)


@command(app)
def screen(
    context: typer.Context,
    table: TableArgument,
    options: NoveltyOptions,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Table of rows known to be normal.", metavar="FILE"),
    ] = None,
) -> None:
    """Rank the rows of a table, oddest first, with reasons and a threshold.

    Without --reference the table itself may hold outliers, and you choose how many rows to flag
    (--share 0.01). With a reference the threshold has a false-alarm rate (--alpha 0.05).

    The result is a folder: report.html, the flagged rows, the scored table and the model. The model
    holds rows of the table: share it as you would share the data.
    """
    from kpca_apps.novelty.screening.options import ScreeningOptions, resolve_rule

    chosen = ScreeningOptions.of(options)
    resolve_rule(chosen, clean=reference is not None)
    if [reference, options.accept, *table].count("-") > 1:
        raise ConfigError("only one of table, reference and accepted rows can come from stdin")
    folder = open_folder(options, "novelty", table)
    with running(options) as run:
        rows = run.read(table)
        refuse_too_wide(options, rows)
        clean = None if reference is None else run.read([reference])
        accepted = run.read_accepted()
        run.clock.lap("reading")
        if options.dry_run:
            print_plan(run, clean or rows, chosen)
            return
        from kpca_apps.novelty.screening.run import screen as screen_rows

        with run.working("Screening", rows, clean):
            result, model = screen_rows(
                rows,
                reference=clean,
                accept=accepted,
                options=chosen,
                command=reproduce(context, replacing=True),
                execution=run.execution,
            )
        run.clock.lap("screening")
        finish(run, context, folder, rows, result, model, save=True)


@command(app, without="accept positive explain out format keep_hidden flagged")
def fit(
    reference: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help="Table of rows known to be normal."),
    ],
    model: Annotated[
        Path,
        typer.Option(
            "--model", metavar="FILE", help="File to write; it holds rows of the reference."
        ),
    ],
    options: NoveltyOptions,
) -> None:
    """Fit a model to rows known to be normal, and save it.

    The model file holds rows of the reference, among which reasons are found: share it as you would
    share the data.
    """
    from kpca_apps.novelty.screening.options import ScreeningOptions, resolve_rule
    from kpca_apps.system.model_files import check_model_path

    chosen = ScreeningOptions.of(options)
    resolve_rule(chosen, clean=True)
    if not options.dry_run:
        check_model_path(model, force=options.force)
    with running(options) as run:
        rows = run.read(reference)
        if options.dry_run:
            print_plan(run, rows, chosen)
            return
        from kpca_apps.cli.novelty.lines import held, learned, say_warnings
        from kpca_apps.novelty.redact import visible_notes
        from kpca_apps.novelty.screening.fit import fit_table
        from kpca_apps.novelty.screening.model import save_model

        with run.working("Fitting", rows):
            fitted, _ = fit_table(rows, chosen, clean=True, execution=run.execution)
    save_model(fitted, model)
    console = run.console
    console.say(learned(fitted))
    say_warnings(console, visible_notes(fitted.warnings, chosen.columns.hide))
    console.say(f"The model {held(fitted)}")
    if options.json:
        console.data_json({"model": str(model), "columns": fitted.encoder.plan.to_dict()})
    else:
        console.data_path(model)


@command(
    app,
    without="by exclude categorical numeric dayfirst kernel gamma sigma n_components ridge "
    "n_landmarks calibration seed dry_run",
)
def score(
    context: typer.Context, model: ModelArgument, table: TableArgument, options: NoveltyOptions
) -> None:
    """Score the rows of a table with a saved model, each independently of the others.

    Rows are flagged by the model's threshold unless another is given.
    """
    from kpca_apps.novelty.screening.model import load_model
    from kpca_apps.novelty.screening.run import score as score_rows

    folder = open_folder(options, "novelty", table)
    with running(options) as run:
        loaded = load_model(model)
        rows = run.read(table)
        refuse_too_wide(options, rows)
        accepted = run.read_accepted()
        chosen = adjusted(loaded, rows, options)
        run.clock.lap("reading")
        with run.working("Scoring", rows):
            result = score_rows(
                loaded,
                rows,
                accept=accepted,
                options=chosen,
                command=reproduce(context, replacing=True),
                execution=run.execution,
            )
        run.clock.lap("scoring")
        finish(run, context, folder, rows, result, loaded, save=False)


@command(app, only="accept id hide delimiter encoding sheet skip_rows bad_lines json quiet config")
def explain(
    model: ModelArgument,
    table: TableArgument,
    options: NoveltyOptions,
    row: Annotated[
        str | None,
        typer.Option(
            "--row", help="The row's id as listed in the report, or its number.", metavar="ID"
        ),
    ] = None,
    line: Annotated[
        int | None,
        typer.Option("--line", help="The line of the file on which the row starts.", metavar="N"),
    ] = None,
) -> None:
    """Explain one row: which columns make it odd, and what was expected instead."""
    from kpca_apps.cli.novelty.lines import explanation_lines, place, say_warnings
    from kpca_apps.novelty.screening.model import load_model
    from kpca_apps.novelty.screening.run import explain_row

    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: --row or --line")
    with running(options) as run:
        loaded = load_model(model)
        rows = run.read(table)
        chosen = adjusted(loaded, rows, options)
        with run.working("Explaining", rows):
            found, result = explain_row(
                loaded,
                rows,
                row=row,
                line=line,
                accept=run.read_accepted(),
                options=chosen,
                execution=run.execution,
            )
    if options.json:
        run.console.data_json(asdict(found))
        return
    say_warnings(run.console, result.warnings)
    if result.scale is not None:
        run.console.say(result.scale.statement)
    run.console.data_lines([place(found, result), *explanation_lines(found)])


@command(
    app,
    without="share count alpha fdr accept by explain calibration workers scheduler format "
    "keep_hidden flagged",
)
def compare(
    context: typer.Context,
    table: TableArgument,
    label: Annotated[  # the command needs one; it is also `options.label`
        str,
        typer.Option(
            "--label", help="Column of the known labels.", rich_help_panel="Columns", metavar="COL"
        ),
    ],
    options: NoveltyOptions,
) -> None:
    """Compare the detector with baselines on a table whose outliers are known.

    The baselines are linear PCA, a one-class SVM, Parzen density, an isolation forest and the local
    outlier factor. All are fitted on all rows, and on a random half of the normal rows (Hoffmann
    2007).
    """
    from kpca_apps.novelty.screening.options import ScreeningOptions

    chosen = ScreeningOptions.of(options)
    folder = open_folder(options, "comparison", table)
    with running(options) as run:
        rows = run.read(table)
        run.clock.lap("reading")
        if options.dry_run:
            print_plan(run, rows, chosen)
            return
        from kpca_apps.novelty.compare.comparison import compare_table

        with run.console.stage("Comparing"):
            result = compare_table(
                rows, chosen, command=reproduce(context, replacing=True), execution=run.execution
            )
        if hidden := without_label(context, result):
            result = replace(result, command=reproduce(context, replacing=True, **hidden))
    run.clock.lap("comparing")
    from kpca_apps.cli.novelty.lines import say_warnings
    from kpca_apps.report.novelty.figures import comparison_figures
    from kpca_apps.report.novelty.page import render_comparison
    from kpca_apps.report.novelty.text import verdict

    for number, evaluation in enumerate(result.evaluations, 1):
        for method in evaluation.methods:
            run.clock.seconds[f"setting {number}: {method.name}"] = round(method.seconds, 3)
    with folder as building:
        pages = [(REPORT_FILE, render_comparison(result))]
        write_result(building, result, pages, comparison_figures(result), run.clock)
    for evaluation in result.evaluations:
        run.console.say(evaluation.setting)
        run.console.say(verdict(evaluation))
    say_warnings(run.console, result.warnings)
    print_result(run.console, folder.path, result, options.json)


OldRun = Annotated[
    Path, typer.Argument(metavar="OLD", help="Folder that screen or score wrote first.")
]
NewRun = Annotated[Path, typer.Argument(metavar="NEW", help="Folder that it wrote later.")]


@command(app, only="out force json quiet config")
def diff(context: typer.Context, old: OldRun, new: NewRun, options: NoveltyOptions) -> None:
    """Compare two screenings: what changed from the first to the second.

    Rows newly flagged and no longer flagged, matched by identifier or else by their cells; columns
    whose distribution shifted; settings that differ. The exit code is 0 whatever is found.
    """
    from kpca_apps.cli.novelty.lines import diff_lines
    from kpca_apps.novelty.compare.diff import diff_runs
    from kpca_apps.report.novelty.page import render_diff
    from kpca_apps.report.novelty.text import diff_headline
    from kpca_apps.system.output import OutputFolder

    folder = OutputFolder(
        options.out or f"kpca-diff-{safe_stem(new.absolute().name)}", force=options.force
    )
    folder.check()
    console, clock = Console(options.quiet), Clock()
    with console.stage("Comparing"):
        result = diff_runs(old, new, command=reproduce(context, replacing=True))
    clock.lap("comparing")
    with folder as building:
        write_result(building, result, [(REPORT_FILE, render_diff(result))], {}, clock)
    console.say(diff_headline(result))
    console.lines(diff_lines(result))
    for warning in result.warnings:
        console.say(f"Note: {warning}")
    print_result(console, folder.path, result, options.json)
