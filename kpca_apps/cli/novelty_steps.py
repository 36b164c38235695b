"""Steps of the commands of ``kpca novelty``: reading, checking, writing the folder, last words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpca_apps.cli.console import TOP, Console, odd_cell_lines, plan_lines, summary_lines
from kpca_apps.cli.novelty_options import given_options
from kpca_apps.cli.novelty_progress import working
from kpca_apps.cli.shared import near
from kpca_apps.files.names import one_line, safe_stem

if TYPE_CHECKING:
    from kpca_apps.cli.clock import Clock
    from kpca_apps.files.output import OutputFolder
    from kpca_apps.novelty.model import NoveltyModel
    from kpca_apps.novelty.options import ScreeningOptions
    from kpca_apps.novelty.parted_rows import Execution
    from kpca_apps.novelty.result import ComparisonResult, Evaluation, RankedRow, ScreeningResult
    from kpca_apps.novelty.table_rows import AnyTable

__all__ = [
    "adjusted",
    "check_model",
    "check_rules",
    "finish",
    "learned",
    "open_folder",
    "place",
    "print_outcome",
    "print_plan",
    "read",
    "say_warnings",
]

MAX_WARNINGS = 5
MAX_PATTERNS = 3


def check_rules(told: ScreeningOptions, *, clean: bool) -> None:
    """Refuse contradicting rules before anything is read."""
    from kpca_apps.novelty.options import resolve_rule

    resolve_rule(told, clean=clean)


def open_folder(
    out: Path | None, application: str, table: str, *, force: bool, check: bool = True
) -> OutputFolder:
    """Name the folder of a run, and refuse one that may not be written, before any work."""
    from kpca_apps.files.output import OutputFolder

    folder = OutputFolder(out or f"kpca-{application}-{safe_stem(table)}", force=force)
    if check:
        folder.check()
    return folder


def check_model(path: Path, *, force: bool) -> None:
    """Refuse a file that may not be written, before any work."""
    from kpca_apps.files.models import check_model_path

    check_model_path(path, force=force)


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
    from kpca_apps.novelty.columns import check_options, infer_plan
    from kpca_apps.novelty.parted_rows import draw_sample
    from kpca_apps.novelty.table_rows import column_names

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
    from kpca_apps.novelty.scoring import inherit_options

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
    from kpca_apps.cli.novelty_runs import MODEL_FILE, write_screening
    from kpca_apps.report.hidden import without_hidden
    from kpca_apps.report.text import headline, plain

    params = context.params
    saved = None if model is None else MODEL_FILE
    steps = next_steps(context, result, folder=folder.path.name, saved=saved)
    result = replace(result, next_steps=steps)
    with working(console, "Writing", table):
        result = write_screening(
            result,
            table,
            folder,
            clock,
            suffix=str(params["format"].value),
            model=model,
            execution=execution,
        )
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
    print_outcome(console, folder, result, params["json"])


def _labels_text(evaluation: Evaluation) -> str:
    """Say how well the scores tell the rows that are labelled as outliers, and beside whom."""
    from kpca_apps.report.curves import PRECISION, ROC, verdict

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
    from kpca_apps.report.text import scores_text

    _, limit = scores_text([row.score for row in result.oddest_of_each_kind[:TOP]], info.value)
    rarity = f", which {info.rarity.words} usual rows would reach" if info.rarity else ""
    return f"Threshold {limit}{rarity}. {info.statement}"


def learned(model: NoveltyModel) -> str:
    """Say what a model was fitted on and how it will flag rows."""
    from kpca_apps.novelty.flagging import rate_statement
    from kpca_apps.report.text import scores_text

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


def print_outcome(
    console: Console,
    folder: OutputFolder,
    result: ScreeningResult | ComparisonResult,
    as_json: bool,
) -> None:
    """Print the result as JSON, or the path of the report as the last line."""
    from kpca_apps.cli.clock import REPORT_FILE
    from kpca_apps.report.result_json import result_to_json

    if as_json:
        console.data(result_to_json(result))
    else:
        console.data_path(near(folder.path) / REPORT_FILE)


def place(row: RankedRow, result: ScreeningResult) -> str:
    """Say in one line which row it is, and where it stands."""
    from kpca_apps.report.text import scores_text

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
