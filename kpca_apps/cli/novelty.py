"""``kpca novelty``: screen, fit, score, explain, compare."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli import options as o
from kpca_apps.cli import steps as s
from kpca_apps.cli.console import Console, explanation_lines
from kpca_apps.errors import ConfigError, InputError, RefusedError
from kpca_apps.files.names import one_line

__all__ = ["app"]

app = typer.Typer(
    name="novelty",
    help="Find the rows of a table that do not belong, with reasons.",
    no_args_is_help=True,
)


@app.command()
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
    calibration: o.Calibration = o.CalibrationName.auto,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    out: o.Out = None,
    force: o.Force = False,
    format: o.Format = o.TableFormat.csv,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    dry_run: o.DryRun = False,
    config: o.Config = None,
) -> None:
    """Rank the rows of a table, oddest first, with reasons and a threshold.

    Without --reference the table itself may hold outliers: --share 0.01 is a choice.

    With it, --alpha 0.05 is a false-alarm rate.

    The folder written holds a model, and the model holds rows of the table.
    """
    from kpca_apps.cli.runs import Clock

    told = o.screening_options(context.params)
    s.check_rules(told, clean=reference is not None)
    if reference == "-" and table == "-":
        raise ConfigError("only one of table and reference can come from stdin")
    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "novelty", table, force=force, check=not dry_run)
    rows = s.read(console, table, delimiter, encoding)
    clean = None if reference is None else s.read(console, reference, delimiter, encoding)
    clock.lap("reading")
    if dry_run:
        s.print_plan(console, clean or rows, told, json)
        return
    from kpca_apps.novelty.screening import screen as screen_rows

    with console.stage("Screening"):
        result, model = screen_rows(
            rows, reference=clean, options=told, command=o.reproduce(context)
        )
    clock.lap("screening")
    s.finish(console, context, clock, folder, rows, result, model)


@app.command()
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
    calibration: o.Calibration = o.CalibrationName.auto,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    force: o.Force = False,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    dry_run: o.DryRun = False,
    config: o.Config = None,
) -> None:
    """Learn a clean reference and save the model.

    The model file holds rows of the reference, for reasons are found among them.

    Share it as you would share the data.
    """
    told = o.screening_options(context.params)
    s.check_rules(told, clean=True)
    console = Console(quiet)
    if not model.parent.is_dir():
        raise InputError(f"{one_line(str(model))}: its folder does not exist; make it first.")
    if model.exists() and not force and not dry_run:
        raise RefusedError(
            f"{one_line(str(model))}: exists already; replace it with --force, or choose another "
            "file with --model."
        )
    rows = s.read(console, reference, delimiter, encoding)
    if dry_run:
        s.print_plan(console, rows, told, json)
        return
    from kpca_apps.novelty.model import fit_model, save_model

    with console.stage("Fitting"):
        fitted = fit_model(rows, told, clean=True)
    save_model(fitted, model)
    used = len(fitted.encoder.plan.used)
    console.say(
        f"Learned {rows.source.n_rows:,} rows of {rows.source.name} by {used} columns; flags by "
        f"{fitted.rule.name} {fitted.rule.setting:g} (threshold {fitted.detector.threshold_:.4g})."
    )
    s.say_warnings(console, fitted.warnings)
    console.say(
        f"The model holds rows of {rows.source.name}: share it as you would share the data."
    )
    if json:
        console.data_json({"model": str(model), "columns": fitted.encoder.plan.to_dict()})
    else:
        console.data(str(model))


@app.command()
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
    out: o.Out = None,
    force: o.Force = False,
    format: o.Format = o.TableFormat.csv,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
) -> None:
    """Judge the rows of a table with a saved model, each independently of the others."""
    from kpca_apps.cli.runs import Clock
    from kpca_apps.novelty.model import load_model
    from kpca_apps.novelty.screening import score_table

    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "novelty", table, force=force)
    loaded = load_model(model)
    rows = s.read(console, table, delimiter, encoding)
    told = s.adjusted(loaded, rows, context.params)
    clock.lap("reading")
    with console.stage("Scoring"):
        result = score_table(loaded, rows, options=told, command=o.reproduce(context))
    clock.lap("scoring")
    s.finish(console, context, clock, folder, rows, result, None)


@app.command()
def explain(
    context: typer.Context,
    model: o.ModelArgument,
    table: o.TableArgument,
    row: Annotated[
        str | None,
        typer.Option("--row", help="Its text in the --id column, else its number.", metavar="ID"),
    ] = None,
    line: Annotated[
        int | None,
        typer.Option("--line", help="The line of the file it starts on.", metavar="N"),
    ] = None,
    id: o.IdColumn = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
) -> None:
    """Say which columns make one row odd, and what was expected instead."""
    from kpca_apps.novelty.explaining import explain_row
    from kpca_apps.novelty.model import load_model

    console = Console(quiet)
    if (row is None) == (line is None):
        raise ConfigError("say which row to explain: --row or --line")
    loaded = load_model(model)
    rows = s.read(console, table, delimiter, encoding)
    told = s.adjusted(loaded, rows, context.params)
    with console.stage("Explaining"):
        found, result = explain_row(loaded, rows, row=row, line=line, options=told)
    if json:
        console.data_json(asdict(found))
        return
    s.say_warnings(console, result.warnings)
    console.data(s.place(found, result))
    for text in explanation_lines(found):
        console.data(text)


@app.command()
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
    quiet: o.Quiet = False,
    dry_run: o.DryRun = False,
    config: o.Config = None,
) -> None:
    """Set the detector beside its rivals on a table whose outliers are known.

    Linear PCA, one-class SVM, Parzen density, isolation forest, local outlier factor.

    Fitted on all rows, and on a drawn half of the normal rows (Hoffmann 2007).
    """
    from kpca_apps.cli.runs import Clock, write_comparison

    told = o.screening_options(context.params)
    console, clock = Console(quiet), Clock()
    folder = s.open_folder(out, "comparison", table, force=force, check=not dry_run)
    rows = s.read(console, table, delimiter, encoding)
    clock.lap("reading")
    if dry_run:
        s.print_plan(console, rows, told, json)
        return
    from kpca_apps.novelty.comparison import compare_table

    with console.stage("Comparing"):
        result = compare_table(rows, told, command=o.reproduce(context))
    clock.lap("comparing")
    write_comparison(result, folder, clock)
    from kpca_apps.report.curves import verdict

    for evaluation in result.evaluations:
        console.say(evaluation.setting)
        console.say(verdict(evaluation))
    s.say_warnings(console, result.warnings)
    s.print_outcome(console, folder, result, json)
