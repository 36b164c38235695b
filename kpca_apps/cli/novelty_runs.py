"""What a run of ``kpca novelty`` leaves behind: one folder, complete or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.files.output import OutputFolder
from kpca_apps.novelty.model import NoveltyModel, save_model
from kpca_apps.novelty.parted_rows import Execution
from kpca_apps.novelty.result import ComparisonResult, ScreeningResult
from kpca_apps.novelty.scored_table import write_scored_table
from kpca_apps.novelty.table_rows import AnyTable

__all__ = [
    "MODEL_FILE",
    "write_comparison",
    "write_screening",
]

MODEL_FILE = "model.kpca"


def write_screening(
    result: ScreeningResult,
    table: AnyTable,
    folder: OutputFolder,
    clock: Clock,
    *,
    suffix: str,
    model: NoveltyModel | None = None,
    execution: Execution | None = None,
) -> ScreeningResult:
    """Write report, JSON, scored table, figures and, if given, the model.

    Parameters
    ----------
    result : ScreeningResult
        What was found.
    table : Table or PartedTable
        The table, for the scored copy.
    folder : OutputFolder
        Where to.
    clock : Clock
        Of the run.
    suffix : str
        ``csv`` or ``parquet``.
    model : NoveltyModel, optional
        Saved beside the report.
    execution : Execution, optional
        Who works on a table that is read in parts.

    Returns
    -------
    ScreeningResult
        The result with what writing had to say.
    """
    from kpca_apps.report.figures import screening_figures
    from kpca_apps.report.render import render_screening
    from kpca_apps.report.result_json import result_to_json

    with folder as building:
        notes = write_scored_table(table, result, building / f"scored.{suffix}", execution)
        result = replace(result, warnings=(*result.warnings, *notes))
        if model is not None:
            save_model(model, building / MODEL_FILE)
        clock.lap("scored table and model")
        _write_text(building / "result.json", result_to_json(result))
        _write_text(building / REPORT_FILE, render_screening(result))
        _write_figures(building, screening_figures(result))
        clock.lap("report")
        _write_text(building / "run.json", clock.to_json())
    return result


def write_comparison(result: ComparisonResult, folder: OutputFolder, clock: Clock) -> None:
    """Write report, JSON and figures of a comparison."""
    from kpca_apps.report.figures import comparison_figures
    from kpca_apps.report.render import render_comparison
    from kpca_apps.report.result_json import result_to_json

    for number, evaluation in enumerate(result.evaluations, 1):
        for method in evaluation.methods:
            clock.seconds[f"setting {number}: {method.name}"] = round(method.seconds, 3)
    with folder as building:
        _write_text(building / "result.json", result_to_json(result))
        _write_text(building / REPORT_FILE, render_comparison(result))
        _write_figures(building, comparison_figures(result))
        clock.lap("report")
        _write_text(building / "run.json", clock.to_json())


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_figures(folder: Path, figures: dict[str, Any]) -> None:
    if figures:
        (folder / "figures").mkdir()
    for name, png in figures.items():
        (folder / "figures" / f"{Path(name).stem}.png").write_bytes(png)
