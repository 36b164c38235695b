"""``kpca novelty``: screen, fit, score, explain, compare."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli import novelty_options as o
from kpca_apps.cli import novelty_steps as s
from kpca_apps.cli.console import Console, explanation_lines
from kpca_apps.cli.results import REPORT_FILE, Clock, print_result, write_result
from kpca_apps.cli.shared import Config, Quiet, command_of
from kpca_apps.errors import ConfigError

__all__ = ["app"]

app = typer.Typer(
    name="novelty",
    help="Find the rows of a table that do not belong, with reasons.",
    no_args_is_help=True,
)
_command = command_of(app)


@_command
def screen(
    context: typer.Context,
    table: o.TableArgument,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Rows known to be normal.", metavar="CLEAN"),
    ] = None,
    share: o.Share = None,
    count: o.Count = None,
    alpha: o.Alpha = None,
    fdr: o.Fdr = None,
    label: o.Label = None,
    positive: o.Positive = None,
    id: o.IdColumn = None,
    exclude: o.Exclude = None,
    categorical: o.Categorical = None,
    numeric: o.Numeric = None,
    hide: o.Hide = None,
    dayfirst: o.DayFirst = None,
    explain: o.Explain = 100,
    kernel: o.Kernel = None,
    gamma: o.Gamma = None,
    sigma: o.Sigma = None,
    components: o.Components = None,
    ridge: o.Ridge = None,
    landmarks: o.Landmarks = None,
    calibration: o.Calibration = "auto",
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    workers: o.Workers = None,
    scheduler: o.Scheduler = None,
    out: o.Out = None,
    force: o.Force = False,
    format: o.Format = "csv",
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: Quiet = False,
    dry_run: o.DryRun = False,
    config: Config = None,
) -> None:
    """Rank the rows of a table, oddest first, with reasons and a threshold.

    Without --reference the table itself may hold outliers, and how many rows are flagged is a
    choice (--share 0.01). With it the threshold has a false-alarm rate (--alpha 0.05).

    The folder written holds a model, and the model holds rows of the table: share it as you would
    share the data.
    """
    from kpca_apps.novelty.screening.options import resolve_rule

    told = o.screening_options(context.params)
    resolve_rule(told, clean=reference is not None)
    if reference == "-" and table == "-":
        raise ConfigError("only one of table and reference can come from stdin")
    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "novelty", table, force=force, check=not dry_run)
    with s.executing(console, context.params, clock) as execution:
        rows = s.read(console, table, delimiter, encoding)
        clean = None if reference is None else s.read(console, reference, delimiter, encoding)
        clock.lap("reading")
        if dry_run:
            s.print_plan(console, clean or rows, told, json, execution)
            return
        from kpca_apps.cli.commands import reproduce
        from kpca_apps.novelty.screening.run import screen as screen_rows

        with s.working(console, "Screening", rows, clean):
            result, model = screen_rows(
                rows,
                reference=clean,
                options=told,
                command=reproduce(context, replacing=True),
                execution=execution,
            )
        clock.lap("screening")
        s.finish(console, context, clock, folder, rows, result, model, execution)


@_command
def fit(
    context: typer.Context,
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="A table whose rows are known to be normal.")
    ],
    model: Annotated[
        Path, typer.Option("--model", help="File to write; it holds rows of the reference.")
    ],
    share: o.Share = None,
    count: o.Count = None,
    alpha: o.Alpha = None,
    fdr: o.Fdr = None,
    label: o.Label = None,
    id: o.IdColumn = None,
    exclude: o.Exclude = None,
    categorical: o.Categorical = None,
    numeric: o.Numeric = None,
    hide: o.Hide = None,
    dayfirst: o.DayFirst = None,
    kernel: o.Kernel = None,
    gamma: o.Gamma = None,
    sigma: o.Sigma = None,
    components: o.Components = None,
    ridge: o.Ridge = None,
    landmarks: o.Landmarks = None,
    calibration: o.Calibration = "auto",
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    workers: o.Workers = None,
    scheduler: o.Scheduler = None,
    force: o.Force = False,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: Quiet = False,
    dry_run: o.DryRun = False,
    config: Config = None,
) -> None:
    """Learn a clean reference and save the model.

    The model file holds rows of the reference, for reasons are found among them: share it as you
    would share the data.
    """
    from kpca_apps.files.models import check_model_path
    from kpca_apps.novelty.screening.options import resolve_rule

    told = o.screening_options(context.params)
    resolve_rule(told, clean=True)
    console = Console(quiet)
    if not dry_run:
        check_model_path(model, force=force)
    with s.executing(console, context.params) as execution:
        rows = s.read(console, reference, delimiter, encoding)
        if dry_run:
            s.print_plan(console, rows, told, json, execution)
            return
        from kpca_apps.novelty.screening.model import fit_model, save_model

        with s.working(console, "Fitting", rows):
            fitted = fit_model(rows, told, clean=True, execution=execution)
    save_model(fitted, model)
    console.say(s.learned(fitted))
    s.say_warnings(console, fitted.warnings)
    console.say(
        f"The model holds rows of {rows.source.name}: share it as you would share the data."
    )
    if json:
        console.data_json({"model": str(model), "columns": fitted.encoder.plan.to_dict()})
    else:
        console.data_path(model)


@_command
def score(
    context: typer.Context,
    model: o.ModelArgument,
    table: o.TableArgument,
    share: o.Share = None,
    count: o.Count = None,
    alpha: o.Alpha = None,
    fdr: o.Fdr = None,
    label: o.Label = None,
    positive: o.Positive = None,
    id: o.IdColumn = None,
    hide: o.Hide = None,
    explain: o.Explain = 100,
    jobs: o.Jobs = None,
    workers: o.Workers = None,
    scheduler: o.Scheduler = None,
    out: o.Out = None,
    force: o.Force = False,
    format: o.Format = "csv",
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Judge the rows of a table with a saved model, each independently of the others.

    Rows are flagged by the rule of the model unless another is given.
    """
    from kpca_apps.cli.commands import reproduce
    from kpca_apps.novelty.screening.model import load_model
    from kpca_apps.novelty.screening.run import score_table

    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "novelty", table, force=force)
    loaded = load_model(model)
    with s.executing(console, context.params, clock) as execution:
        rows = s.read(console, table, delimiter, encoding)
        told = s.adjusted(loaded, rows, context.params)
        clock.lap("reading")
        with s.working(console, "Scoring", rows):
            result = score_table(
                loaded,
                rows,
                options=told,
                command=reproduce(context, replacing=True),
                execution=execution,
            )
        clock.lap("scoring")
        s.finish(console, context, clock, folder, rows, result, None, execution)


@_command
def explain(
    context: typer.Context,
    model: o.ModelArgument,
    table: o.TableArgument,
    row: Annotated[
        str | None,
        typer.Option("--row", help="Its id as listed, or its number.", metavar="ID"),
    ] = None,
    line: Annotated[
        int | None,
        typer.Option("--line", help="The line of the file it starts on.", metavar="N"),
    ] = None,
    id: o.IdColumn = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Say which columns make one row odd, and what was expected instead."""
    from kpca_apps.novelty.screening.model import load_model
    from kpca_apps.novelty.screening.run import explain_row

    console = Console(quiet)
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: --row or --line")
    loaded = load_model(model)
    rows = s.read(console, table, delimiter, encoding)
    told = s.adjusted(loaded, rows, context.params)
    with (
        s.executing(console, context.params) as execution,
        s.working(console, "Explaining", rows),
    ):
        found, result = explain_row(
            loaded, rows, row=row, line=line, options=told, execution=execution
        )
    if json:
        console.data_json(asdict(found))
        return
    s.say_warnings(console, result.warnings)
    if result.scale is not None:
        console.say(result.scale.statement)
    console.data_lines([s.place(found, result), *explanation_lines(found)])


@_command
def compare(
    context: typer.Context,
    table: o.TableArgument,
    label: o.RequiredLabel,
    positive: o.Positive = None,
    id: o.IdColumn = None,
    exclude: o.Exclude = None,
    categorical: o.Categorical = None,
    numeric: o.Numeric = None,
    dayfirst: o.DayFirst = None,
    kernel: o.Kernel = None,
    gamma: o.Gamma = None,
    sigma: o.Sigma = None,
    components: o.Components = None,
    ridge: o.Ridge = None,
    landmarks: o.Landmarks = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    out: o.Out = None,
    force: o.Force = False,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: Quiet = False,
    dry_run: o.DryRun = False,
    config: Config = None,
) -> None:
    """Set the detector beside its rivals on a table whose outliers are known.

    The rivals are linear PCA, a one-class SVM, Parzen density, an isolation forest and the local
    outlier factor. All are fitted on all rows, and on a drawn half of the normal rows (Hoffmann
    2007).
    """
    told = o.screening_options(context.params)
    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "comparison", table, force=force, check=not dry_run)
    with s.executing(console, context.params, clock) as execution:
        rows = s.read(console, table, delimiter, encoding)
        clock.lap("reading")
        if dry_run:
            s.print_plan(console, rows, told, json, execution)
            return
        from kpca_apps.cli.commands import reproduce
        from kpca_apps.novelty.compare.comparison import compare_table

        with console.stage("Comparing"):
            result = compare_table(
                rows, told, command=reproduce(context, replacing=True), execution=execution
            )
    clock.lap("comparing")
    from kpca_apps.report.novelty.figures import comparison_figures
    from kpca_apps.report.novelty.page import render_comparison
    from kpca_apps.report.novelty.text import verdict

    for number, evaluation in enumerate(result.evaluations, 1):
        for method in evaluation.methods:
            clock.seconds[f"setting {number}: {method.name}"] = round(method.seconds, 3)
    with folder as building:
        pages = [(REPORT_FILE, render_comparison(result))]
        write_result(building, result, pages, comparison_figures(result), clock)
    for evaluation in result.evaluations:
        console.say(evaluation.setting)
        console.say(verdict(evaluation))
    s.say_warnings(console, result.warnings)
    print_result(console, folder.path, result, json)
