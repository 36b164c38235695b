"""The work of ``kpca papers list`` and ``run``."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from kpca_apps.cli.clock import REPORT_FILE, Clock
from kpca_apps.cli.commands import reproduce
from kpca_apps.cli.console import Console, column_lines, say_line, terminal_width
from kpca_apps.cli.shared import near
from kpca_apps.errors import ConfigError, InputError, StoppedError
from kpca_apps.files.names import one_line, suggest
from kpca_apps.files.output import OutputFolder

if TYPE_CHECKING:
    from kpca_apps.papers.registry import Experiment
    from kpca_apps.papers.result import GalleryResult, Reproduction

__all__ = ["print_list", "run_experiments"]


INDENT = 2


def print_list(console: Console, as_json: bool) -> None:
    """Print all experiments, under the paper they are of, or as JSON."""
    from kpca_apps.papers.registry import all_experiments

    found = [*all_experiments().values()]
    if as_json:
        names = ("name", "paper", "title", "data")
        console.data_json([{key: getattr(one, key) for key in names} for one in found])
        return
    console.data_lines(_list_lines(found, terminal_width()))


def _list_lines(found: list[Experiment], width: int) -> list[str]:
    """Lay out names, data and titles; titles are wrapped, so that a terminal does not."""
    from kpca_apps.report.gallery_text import work_of

    cells = {one.name: (one.name, ", ".join(one.data) or "none") for one in found}
    heads = column_lines([("name", "data"), *cells.values()])
    before = max(map(len, heads)) + INDENT + 2
    starts = dict(zip(cells, heads[1:], strict=True))
    lines = [f"{'':{INDENT}}{heads[0]}".ljust(before) + "what is shown"]
    for work, members in groupby(found, lambda one: work_of(one.paper)[0]):
        lines.append(work)
        for one in members:
            part = work_of(one.paper)[1]
            told = wrap(f"{one.title} [{part}]" if part else one.title, max(width - before, 20))
            lines.append(f"{'':{INDENT}}{starts[one.name]}".ljust(before) + told[0])
            lines += [" " * before + more for more in told[1:]]
    return lines


def run_experiments(
    console: Console,
    context: typer.Context,
    name: str,
    data: Path | None,
    out: Path | None,
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
    ConfigError
        If there is no experiment of that name.
    InputError
        If the data folder is none, or the only experiment asked for lacks its data.
    StoppedError
        If it was interrupted; what was done is written.
    """
    from kpca_apps.papers.elsewhere import ELSEWHERE
    from kpca_apps.papers.running import gathered

    chosen = _chosen(name)
    folder = OutputFolder(out or f"kpca-papers-{name}", force=force)
    folder.check()
    if data is not None and not data.is_dir():
        raise InputError(f"{one_line(str(data), 200)}: no folder; kpca papers fetch makes one.")
    clock = Clock()
    done, interrupted = _run(console, chosen, data, clock)
    places = ELSEWHERE if len(chosen) > 1 else ()
    result = gathered(done, command=reproduce(context, replacing=False), elsewhere=places)
    if result.n_failed == len(chosen):
        raise InputError(f"{chosen[0].name}: {result.reproductions[0].failed}")
    with console.stage("Drawing"):
        _write(result, folder, clock)
    page = near(folder.path) / REPORT_FILE
    if interrupted:
        n_done = len(chosen) - result.n_failed
        raise StoppedError(
            f"interrupted; {n_done} of {len(chosen)} experiments were done, and are kept in {page}"
        )
    _say(console, result)
    if as_json:
        from kpca_apps.report.result_json import result_to_json

        console.data(result_to_json(result))
    else:
        console.data_path(page)
    return result.n_failed


def _chosen(name: str) -> list[Experiment]:
    """Return the experiments asked for, or name the one that was meant."""
    from kpca_apps.papers.registry import all_experiments, chosen_experiments

    try:
        return chosen_experiments(name)
    except ConfigError:
        meant = suggest(name, ("all", *all_experiments()))
        raise ConfigError(
            f'There is no experiment "{one_line(name)}".{meant} kpca papers list names them all.'
        ) from None


def _run(
    console: Console, chosen: list[Experiment], data: Path | None, clock: Clock
) -> tuple[list[Reproduction], bool]:
    """Run experiments one by one, each with a line when it is done.

    Returns
    -------
    done : list of Reproduction
        One for each of those chosen.
    interrupted : bool
        Whether the last of them were not tried.
    """
    from kpca_apps.papers.running import not_run

    done: list[Reproduction] = []
    try:
        for place, experiment in enumerate(chosen, 1):
            with console.stage(f"{experiment.name} ({place} of {len(chosen)})"):
                done.append(_attempt(experiment, data, is_only=len(chosen) == 1))
            clock.lap(experiment.name)
            if len(chosen) > 1 or not done[-1].failed:
                _tell(console, done[-1])
    except KeyboardInterrupt:
        if all(one.failed for one in done):
            raise
        left = chosen[len(done) :]
        return [*done, *(not_run(one, "interrupted before it was done.") for one in left)], True
    return done, False


def _attempt(experiment: Experiment, data: Path | None, *, is_only: bool) -> Reproduction:
    """Run one experiment; what goes wrong in it does not lose the others."""
    from kpca_apps.papers.data import PaperData
    from kpca_apps.papers.running import not_run
    from kpca_apps.papers.running import reproduce as run_one

    try:
        return run_one(experiment, PaperData(data))
    except Exception as error:
        if is_only or os.environ.get("KPCA_DEBUG") == "1":
            raise
        what = f"a bug in kpca, {type(error).__name__}: {error}"
        return not_run(experiment, f"{one_line(what, 300)} (please report it).")


def _tell(console: Console, one: Reproduction) -> None:
    from kpca_apps.report.gallery_text import standing

    if one.failed:
        say_line(f"not run: {one.name}: {one.failed}")
    elif one.is_untried:
        console.say(f"not run: {one.name}: {one.outcome.claims[0].why}.")
    else:
        console.say(f"{one.name}: {standing(one)}.")


def _write(result: GalleryResult, folder: OutputFolder, clock: Clock) -> None:
    """Write the page, its figures and its numbers."""
    from kpca_apps.report.gallery import gallery_figures, render_gallery
    from kpca_apps.report.result_json import result_to_json

    with folder as building:
        (building / REPORT_FILE).write_bytes(render_gallery(result).encode())
        (building / "result.json").write_bytes(result_to_json(result).encode())
        figures = gallery_figures(result)
        if figures:
            (building / "figures").mkdir()
        for name, png in figures.items():
            (building / "figures" / f"{name}.png").write_bytes(png)
        clock.lap("report")
        (building / "run.json").write_bytes(clock.to_json().encode())


def _say(console: Console, result: GalleryResult) -> None:
    from kpca_apps.report.gallery_text import headline, left_out

    console.say(headline(result))
    # Of one experiment its own line has said so.
    if len(result.reproductions) > 1 and (sentence := left_out(result)):
        console.say(sentence)
