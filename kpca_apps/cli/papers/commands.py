"""``kpca papers``: list, run, fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli.console import Console
from kpca_apps.cli.options import SOME_FAILED, command, group
from kpca_apps.options import Options, files, general

app = group("papers", "Rerun the experiments of the papers.")


class PapersOptions(Options):
    """Options of ``kpca papers``; each command uses some of them."""

    data: Path | None = files("Folder of the data files.", "DIR")
    out: Path | None = files("Folder of the results. Default: kpca-papers-NAME.", "DIR")
    force: bool = files("Replace the results of an earlier run.", default=False)
    json: bool = general("Print the result as JSON.", default=False)


@command(app, only="json")
def list(options: PapersOptions) -> None:
    """List the experiments, and the data each needs."""
    from kpca_apps.cli.papers.run import print_list

    print_list(options.json)


@command(app, without="dry_run config")
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of an experiment, or all.")],
    options: PapersOptions,
) -> int:
    """Run an experiment, or all, and write a page.

    Each claim of a paper is listed with our value, the tolerance and the outcome. Experiments whose
    data are missing are listed, the others run, and the exit code is 5. After an interrupt the
    finished experiments are saved (in DIR.interrupted, if DIR holds an earlier result).

    On two processors all take about five minutes; those that need no data, one minute.
    """
    from kpca_apps.cli.papers.run import run_experiments

    return SOME_FAILED if run_experiments(context, name, options) else 0


@command(app, only="quiet")
def fetch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the data files.")],
    options: PapersOptions,
) -> int:
    """Download the data of the papers, for kpca papers run --data.

    Five megabytes from public copies on GitHub. Each file is checked by its SHA-256; files that are
    there already are kept. The files state no licence: use them as their sources allow.
    """
    from kpca_apps.cli.papers.fetch import fetch_files

    return SOME_FAILED if fetch_files(Console(options.quiet), folder) else 0
