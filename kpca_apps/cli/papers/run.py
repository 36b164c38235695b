"""The work of ``kpca papers list`` and ``run``."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from textwrap import wrap

import typer

from kpca_apps.cli.commands import reproduce as command_of
from kpca_apps.cli.console import Console, column_lines, say_line, terminal_width
from kpca_apps.cli.papers.commands import PapersOptions
from kpca_apps.cli.results import REPORT_FILE, Clock, near, print_result, write_result
from kpca_apps.errors import InputError, RefusedError, StoppedError
from kpca_apps.names import one_line
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.registry import (
    ELSEWHERE,
    all_experiments,
    chosen_experiments,
    gathered,
    not_run,
    reproduce,
)
from kpca_apps.papers.result import Experiment, Reproduction
from kpca_apps.report.document import Document, Part
from kpca_apps.report.papers.text import headline, left_out, standing, work_of
from kpca_apps.system.files.output import OutputFolder
from kpca_apps.system.interrupts import interrupts_held

INDENT = 2
EXPERIMENTS = Document(
    "experiments",
    "The experiments that can be run: kpca papers list --json.",
    added={
        "experiments": [Part("Experiment", "One to be run.", ((Experiment, ("run", "method")),))]
    },
)


def print_list(as_json: bool) -> None:
    """Print all experiments by paper, or as JSON."""
    console, found = Console(), [*all_experiments().values()]
    if as_json:
        names = ("name", "paper", "title", "data")
        listed = [{key: getattr(one, key) for key in names} for one in found]
        console.data_json(EXPERIMENTS, {"experiments": listed})
        return
    console.data_lines(_list_lines(found, terminal_width()))


def _list_lines(found: list[Experiment], width: int) -> list[str]:
    cells = {one.name: (one.name, ", ".join(one.data) or "none") for one in found}
    heads = column_lines([("name", "data"), *cells.values()])
    before = max(map(len, heads)) + INDENT + 2
    starts = dict(zip(cells, heads[1:], strict=True))
    lines = [f"{'':{INDENT}}{heads[0]}".ljust(before) + "what is shown"]
    for work, members in groupby(found, lambda one: work_of(one.paper)[0]):
        lines.append(work)
        for one in members:
            part = work_of(one.paper)[1]
            title = f"{one.title} [{part}]" if part else one.title
            first, *others = wrap(title, max(width - before, 20))
            lines.append(f"{'':{INDENT}}{starts[one.name]}".ljust(before) + first)
            lines += [" " * before + more for more in others]
    return lines


def run_experiments(context: typer.Context, name: str, options: PapersOptions) -> int:
    """Run experiments and write their page, figures and numbers; return the number of failures.

    While results are written, interrupts wait. If a run is interrupted and the folder has earlier
    results, the new results go to a folder next to it.
    """
    console, chosen = Console(options.quiet), chosen_experiments(name)
    complete, partial = _folders(options.out or Path(f"kpca-papers-{name}"), force=options.force)
    _check_data(options.data)
    # Import before the first experiment, to notice a missing library at once.
    from kpca_apps.report.papers.page import gallery_figures, render_gallery

    clock, interrupted = Clock(), False
    done: list[Reproduction] = []
    try:
        for place, experiment in enumerate(chosen, 1):
            with console.stage(f"{experiment.name} ({place} of {len(chosen)})"):
                done.append(_attempt(experiment, options.data, is_only=len(chosen) == 1))
            clock.lap(experiment.name)
            if len(chosen) > 1 or not done[-1].failed:
                _say_outcome(console, done[-1])
    except KeyboardInterrupt:
        interrupted = True
    with interrupts_held(drop=True):
        left = [not_run(one, "interrupted before it was done.") for one in chosen[len(done) :]]
        elsewhere = ELSEWHERE if len(chosen) > 1 else ()
        result = gathered([*done, *left], command=command_of(context), elsewhere=elsewhere)
        n_done = len(chosen) - result.n_failed
        folder = partial if interrupted else complete
        if interrupted:
            if not n_done:
                raise StoppedError("interrupted; nothing was written")
            plural = "" if n_done == 1 else "s"
            console.say(f"interrupted; writing the {n_done} experiment{plural} done")
        elif result.n_failed == len(chosen):
            raise InputError(f"{chosen[0].name}: {result.reproductions[0].failed}")
        with console.stage("Drawing"):
            try:
                with folder as building:
                    pages = [(REPORT_FILE, render_gallery(result))]
                    write_result(building, result, pages, gallery_figures(result), clock)
            except MemoryError:
                raise RefusedError(
                    "not enough memory on this machine to draw the page: end other programs, or "
                    "run the experiments one by one"
                ) from None
    if interrupted:
        page = near(folder.path) / REPORT_FILE
        earlier = f"; {near(complete.path)} is as it was" if folder is not complete else ""
        raise StoppedError(
            f"interrupted; {n_done} of {len(chosen)} experiments were done, and are saved in "
            f"{page}{earlier}"
        )
    console.say(headline(result))
    if len(chosen) > 1 and (sentence := left_out(result)):
        console.say(sentence)
    print_result(console, folder.path, result, options.json)
    return result.n_failed


def _folders(place: Path, *, force: bool) -> tuple[OutputFolder, OutputFolder]:
    """Return the folder of complete results, and that of an interrupted run's results."""
    folder = OutputFolder(place, force=force)
    folder.check()
    if not folder.path.exists():
        return folder, folder
    beside = OutputFolder(folder.path.with_name(f"{folder.path.name}.interrupted"), force=True)
    beside.check()
    return folder, beside


def _check_data(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        os.stat(f"{folder}/.")  # noqa: PTH116 (a Path would drop the dot)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("is not a folder; make one with kpca papers fetch DIR.", folder) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}).", folder) from None


def _attempt(experiment: Experiment, data: Path | None, *, is_only: bool) -> Reproduction:
    """Run one experiment; an error does not stop the other experiments."""
    try:
        return reproduce(experiment, PaperData(data))
    except Exception as error:
        if is_only or os.environ.get("KPCA_DEBUG") == "1":
            raise
        what = f"a bug in kpca, {type(error).__name__}: {error}"
        return not_run(experiment, f"{one_line(what, 300)} (please report it).")


def _say_outcome(console: Console, one: Reproduction) -> None:
    if one.failed:
        say_line(f"not run: {one.name}: {one.failed}")
    elif one.is_untried:
        console.say(f"not run: {one.name}: {one.outcome.claims[0].why}.")
    else:
        console.say(f"{one.name}: {standing(one)}.")
