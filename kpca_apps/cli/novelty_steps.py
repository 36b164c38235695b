"""Steps of the commands of ``kpca novelty``: who works, reading, checking, writing, last words."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpca_apps.cli.console import TOP, Console, odd_cell_lines, plan_lines, summary_lines
from kpca_apps.cli.novelty_options import given_options
from kpca_apps.cli.progress import row_progress
from kpca_apps.cli.results import REPORT_FILE, Clock, print_result, write_result
from kpca_apps.errors import ConfigError
from kpca_apps.files.names import one_line, safe_stem

if TYPE_CHECKING:
    from kpca_apps.files.output import OutputFolder
    from kpca_apps.novelty.result import Evaluation, RankedRow, ScreeningResult
    from kpca_apps.novelty.screening.model import NoveltyModel
    from kpca_apps.novelty.screening.options import ScreeningOptions
    from kpca_apps.novelty.table.parted_rows import Execution
    from kpca_apps.novelty.table.rows import AnyTable

__all__ = [
    "MODEL_FILE",
    "adjusted",
    "executing",
    "finish",
    "learned",
    "open_folder",
    "place",
    "print_plan",
    "read",
    "say_warnings",
    "working",
]

MODEL_FILE = "model.kpca"
MAX_WARNINGS = 5
MAX_PATTERNS = 3
# Memory that a worker takes while it reads a part of a table and works on it.
A_WORKER = 400_000_000


@contextmanager
def executing(
    console: Console, params: Mapping[str, Any], clock: Clock | None = None
) -> Iterator[Execution]:
    """Gather who was asked to work, by `params`; they are let go when the block ends.

    Each pass shows how far it is on the console, and the clock takes its time.
    """
    from kpca_apps.novelty.table.parted_rows import Execution
    from kpca_apps.parallel.workers import Workers

    kind, jobs, scheduler = _asked(params)
    if kind == "dask":
        # What its machinery has to say in passing is for those who run a cluster.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    else:
        jobs = jobs or _worthwhile()
    with Workers(kind, n_workers=jobs, scheduler=scheduler) as workers:
        yield Execution(workers, partial(_showing, console, clock, count(1)))


@contextmanager
def _showing(
    console: Console, clock: Clock | None, numbers: Iterator[int], what: str, n_rows: int
) -> Iterator[Callable[[int], None]]:
    """Show how far one pass is while the block runs, and take its time."""
    number, began = next(numbers), time.perf_counter()
    with row_progress(console, what, n_rows) as advance:
        yield advance
    if clock is not None:
        seconds = round(time.perf_counter() - began, 3)
        clock.seconds[f"pass {number}, {what.lower()}"] = seconds


def _asked(params: Mapping[str, Any]) -> tuple[Any, int | None, str | None]:
    """Return the executor, the number of workers and the scheduler."""
    asked, jobs = params.get("workers"), params.get("jobs")
    scheduler = params.get("scheduler")
    kind = "threads" if asked is None else str(asked)
    if scheduler is None:
        return kind, jobs, None
    if asked is not None and kind != "dask":
        raise ConfigError(
            f"--scheduler is the address of a Dask cluster, and --workers {kind} are on this "
            "machine: leave one of them out"
        )
    if jobs is not None:
        raise ConfigError(
            "--jobs sets the number of workers on this machine, and the cluster at --scheduler "
            "has its own: leave one of them out"
        )
    return "dask", None, scheduler


def _worthwhile() -> int:
    """Return how many workers the cores and the memory of this machine allow."""
    from joblib import cpu_count

    from kpca_apps.memory import available_bytes

    return max(1, min(int(cpu_count()), available_bytes() // A_WORKER))


def working(console: Console, text: str, *tables: AnyTable | None) -> AbstractContextManager[None]:
    """Show that work is going on; for tables read in parts, their passes show it themselves."""
    from kpca_apps.files.tables.table import PartedTable

    if any(isinstance(table, PartedTable) for table in tables):
        return nullcontext()
    return console.stage(text)


def open_folder(
    out: Path | None, application: str, table: str, *, force: bool, check: bool = True
) -> OutputFolder:
    """Name the folder of a run, and refuse one that may not be written, before any work."""
    from kpca_apps.files.output import OutputFolder

    folder = OutputFolder(out or f"kpca-{application}-{safe_stem(table)}", force=force)
    if check:
        folder.check()
    return folder


def read(console: Console, path: str, delimiter: str | None, encoding: str | None) -> AnyTable:
    """Read a table, or look at where the parts of a large one are."""
    from kpca_apps.files.tables.opening import open_table

    with console.stage(f"Reading {path}"):
        return open_table(path, delimiter=delimiter, encoding=encoding)


def print_plan(
    console: Console,
    table: AnyTable,
    told: ScreeningOptions,
    as_json: bool,
    execution: Execution,
) -> None:
    """Print what every column becomes, as data."""
    from kpca_apps.novelty.table.columns import check_options, infer_plan
    from kpca_apps.novelty.table.parted_rows import draw_sample
    from kpca_apps.novelty.table.rows import column_names

    check_options(told.columns, column_names(table), table.source.name)
    sample = draw_sample(table, told.seed, execution)
    plan = infer_plan(sample.table, told.columns)
    if len(sample.index) < table.source.n_rows:
        console.say(
            f"The plan rests on {len(sample.index):,} rows drawn from {table.source.n_rows:,}."
        )
    for note in (*table.source.notes, *plan.warnings):
        console.say(note)
    if as_json:
        console.data_json(plan.to_dict())
    else:
        console.data_lines(plan_lines(plan))


def adjusted(model: NoveltyModel, table: AnyTable, params: Mapping[str, Any]) -> ScreeningOptions:
    """Options of a model, changed by what stands on the command line."""
    from kpca_apps.novelty.screening.run import inherit_options

    hide = tuple(params.get("hide") or ())
    columns = {"label": params.get("label"), "id": params.get("id"), "hide": hide or None}
    return inherit_options(model, table, **given_options(params), **columns)


def finish(
    console: Console,
    context: typer.Context,
    clock: Clock,
    folder: OutputFolder,
    table: AnyTable,
    result: ScreeningResult,
    model: NoveltyModel | None,
    execution: Execution,
) -> None:
    """Write the folder of a screening and say what was found."""
    from kpca_apps.cli.commands import next_steps
    from kpca_apps.novelty.screening.model import save_model
    from kpca_apps.novelty.screening.run import write_scored_table
    from kpca_apps.report.novelty.figures import screening_figures
    from kpca_apps.report.novelty.page import render_screening
    from kpca_apps.report.novelty.text import headline, without_hidden
    from kpca_apps.report.text import plain

    params = context.params
    saved = None if model is None else MODEL_FILE
    steps = next_steps(context, result, folder=folder.path.name, saved=saved)
    result = replace(result, next_steps=steps)
    with working(console, "Writing", table), folder as building:
        scored = building / f"scored.{params['format']}"
        notes = write_scored_table(table, result, scored, execution)
        result = replace(result, warnings=(*result.warnings, *notes))
        if model is not None:
            save_model(model, building / MODEL_FILE)
        clock.lap("scored table and model")
        pages = [(REPORT_FILE, render_screening(result))]
        write_result(building, result, pages, screening_figures(result), clock)
    shown = without_hidden(result)
    console.say(plain(headline(shown)))
    console.lines(["", *summary_lines(shown), ""])
    if shown.odd_cells:
        console.lines([*odd_cell_lines(shown), ""])
    for pattern in shown.patterns[:MAX_PATTERNS]:
        console.say(pattern.sentence)
    if len(shown.patterns) > MAX_PATTERNS:
        console.say(
            f"... and {len(shown.patterns) - MAX_PATTERNS} more such patterns in result.json."
        )
    if result.duplicates.statement:
        console.say(result.duplicates.statement)
    console.say(_threshold_text(result))
    if result.scale is not None:
        console.say(result.scale.statement)
    for evaluation in result.evaluations:
        console.say(_labels_text(evaluation))
    for note in table.source.notes:
        console.say(note)
    say_warnings(console, result.warnings)
    if model is not None:
        console.say(
            f"{MODEL_FILE} holds rows of {model.source.name}: share it as you would share the data."
        )
    print_result(console, folder.path, result, params["json"])


def _labels_text(evaluation: Evaluation) -> str:
    """Say how well the scores tell the rows that are labelled as outliers, and beside whom."""
    from kpca_apps.report.novelty.text import PRECISION, ROC, verdict

    ours = next(curve for curve in evaluation.methods if curve.ours)
    areas = f"{ROC.label} {ours.auroc:.3f}, {PRECISION.label} {ours.auprc:.3f}."
    return (
        f"Against the labels, {evaluation.n_positive:,} of {evaluation.n_rows:,} rows with "
        f"{one_line(evaluation.label, 60)} {one_line(evaluation.positive, 60)}: "
        f"{verdict(evaluation) or areas}"
    )


def _threshold_text(result: ScreeningResult) -> str:
    """Say the threshold, in digits that tell it from the scores shown, and what it means."""
    info = result.threshold
    if not math.isfinite(info.value):
        return info.statement
    from kpca_apps.report.novelty.text import scores_text

    _, limit = scores_text([row.score for row in result.oddest_of_each_kind[:TOP]], info.value)
    rarity = f", which {info.rarity.words} usual rows would reach" if info.rarity else ""
    return f"Threshold {limit}{rarity}. {info.statement}"


def learned(model: NoveltyModel) -> str:
    """Say what a model was fitted on and how it will flag rows."""
    from kpca_apps.novelty.screening.verdict import rate_statement
    from kpca_apps.report.novelty.text import scores_text

    rule, detector = model.rule, model.detector
    what = (
        f"Learned {model.source.n_rows:,} rows of {one_line(model.source.name)} by "
        f"{len(model.encoder.plan.used)} columns."
    )
    if rule.name != "alpha":
        return (
            f"{what} It flags by {rule.name} {rule.setting:g}; the threshold is set on each table "
            "scored."
        )
    statement = rate_statement(
        rule.setting,
        detector.threshold_,
        len(detector.calibration_scores_),
        detector.calibration_ or "leave-one-out",
    )
    if not math.isfinite(detector.threshold_):
        return f"{what} {statement}"
    return f"{what} Threshold {scores_text([], detector.threshold_)[1]}. {statement}"


def say_warnings(console: Console, warnings: tuple[str, ...]) -> None:
    """Say the first warnings, and how many more there are."""
    for warning in warnings[:MAX_WARNINGS]:
        console.say(f"Note: {warning}")
    if len(warnings) > MAX_WARNINGS:
        console.say(f"... and {len(warnings) - MAX_WARNINGS} more notes in the report.")


def place(row: RankedRow, result: ScreeningResult) -> str:
    """Say in one line which row it is, and where it stands."""
    from kpca_apps.report.novelty.text import scores_text

    name = f" ({one_line(row.id, 60)})" if row.id else ""
    line = f", line {row.line}" if row.line is not None else ""
    rarity = f"p-value {row.p_value:.3g}; " if row.p_value is not None else ""
    if row.rarity is not None:
        rarity = f"{row.rarity.words} usual rows would score so high; "
    verdict = "flagged" if row.flagged else "not flagged"
    near = result.scores[abs(result.ranks - row.rank) == 1].tolist()
    (score, *_), limit = scores_text([row.score, *near], result.threshold.value)
    limit = f"threshold {limit}" if math.isfinite(result.threshold.value) else "no threshold"
    return (
        f"Row {row.row}{name}{line}: {rarity}novelty score {score} ({limit}), {verdict}, rank "
        f"{row.rank} of {result.n_rows}."
    )
