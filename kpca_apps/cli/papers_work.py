"""The work of ``kpca papers list`` and ``run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.cli.commands import reproduce
from kpca_apps.cli.console import Console, column_lines, say_line
from kpca_apps.cli.shared import near
from kpca_apps.errors import InputError
from kpca_apps.files.names import one_line
from kpca_apps.files.output import OutputFolder

if TYPE_CHECKING:
    from kpca_apps.papers.registry import Experiment
    from kpca_apps.papers.result import GalleryResult, Reproduction

__all__ = ["print_list", "run_experiments"]


def print_list(console: Console, as_json: bool) -> None:
    """Print all experiments, a line each, or as JSON."""
    from kpca_apps.papers.registry import all_experiments

    found = all_experiments().values()
    if as_json:
        names = ("name", "paper", "title", "data")
        console.data_json([{key: getattr(one, key) for key in names} for one in found])
        return
    cells = [(one.name, ", ".join(one.data) or "none", one.title, one.paper) for one in found]
    console.data_lines(column_lines([("name", "data files", "what", "paper"), *cells]))


def run_experiments(
    console: Console,
    context: typer.Context,
    name: str,
    data: Path | None,
    out: Path,
    *,
    force: bool,
    as_json: bool,
) -> int:
    """Run experiments and write their page, figures and numbers.

    Returns
    -------
    int
        How many could not be run.

    Raises
    ------
    InputError
        If the data folder is none, or the only experiment asked for lacks its data.
    """
    from kpca_apps.papers.registry import chosen_experiments

    folder = OutputFolder(out, force=force)
    folder.check()
    if data is not None and not data.is_dir():
        raise InputError(f"{one_line(str(data), 200)}: no folder; kpca papers fetch makes one.")
    chosen = chosen_experiments(name)
    clock = Clock()
    result = _run(console, context, chosen, data, clock)
    if result.n_failed == len(chosen):
        raise InputError(f"{chosen[0].name}: {result.reproductions[0].failed}")
    with console.stage("Drawing"):
        _write(result, folder, clock)
    _say(console, result)
    if as_json:
        from kpca_apps.report.result_json import result_to_json

        console.data(result_to_json(result))
    else:
        console.data(str(near(folder.path) / REPORT_FILE))
    return result.n_failed


def _run(
    console: Console,
    context: typer.Context,
    chosen: list[Experiment],
    data: Path | None,
    clock: Clock,
) -> GalleryResult:
    """Run experiments one by one, each with a line when it is done."""
    from kpca_apps.papers.data import PaperData
    from kpca_apps.papers.elsewhere import ELSEWHERE
    from kpca_apps.papers.running import gathered
    from kpca_apps.papers.running import reproduce as run_one
    from kpca_apps.report.gallery_text import standing

    done: list[Reproduction] = []
    for place, experiment in enumerate(chosen, 1):
        with console.stage(f"{experiment.name} ({place} of {len(chosen)})"):
            done.append(run_one(experiment, PaperData(data)))
        clock.lap(experiment.name)
        if done[-1].failed:
            say_line(f"not run: {experiment.name}: {done[-1].failed}")
        else:
            console.say(f"{experiment.name}: {standing(done[-1])}.")
    places = ELSEWHERE if len(done) > 1 else ()
    return gathered(done, command=reproduce(context), elsewhere=places)


def _write(result: GalleryResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the page, its figures and its numbers."""
    from kpca_apps.report.gallery import gallery_figures, render_gallery
    from kpca_apps.report.result_json import result_to_json

    with folder as building:
        (building / REPORT_FILE).write_bytes(render_gallery(result).encode())
        (building / "result.json").write_bytes(result_to_json(result).encode())
        (building / "figures").mkdir()
        for name, png in gallery_figures(result).items():
            (building / "figures" / f"{name}.png").write_bytes(png)
        clock.lap("report")
        (building / "run.json").write_bytes(clock.to_json().encode())


def _say(console: Console, result: GalleryResult) -> None:
    from kpca_apps.report.gallery_text import headline

    console.say(headline(result))
    if result.n_failed:
        console.say(f"{result.n_failed} of {len(result.reproductions)} experiments not run.")
