"""``kpca papers``: list, run, fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli.console import Console
from kpca_apps.cli.options import command
from kpca_apps.cli.papers.options import PapersOptions, folder_name

SOME_FAILED = 5

app = typer.Typer(
    name="papers",
    help="Run the experiments of the papers on kernel PCA, their numbers beside ours.",
    no_args_is_help=True,
)


@command(app, only="json")
def list(options: PapersOptions) -> None:
    """List the experiments: name, paper, what is shown, and the data each needs."""
    from kpca_apps.cli.papers.run import print_list

    print_list(options.json)


@command(app, without="dry_run config")
def run(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of an experiment, or all.", show_default=False)
    ],
    options: PapersOptions,
) -> None:
    """Run an experiment, or all, and write one page of figures and tables.

    Each claim of a paper stands with its value beside ours, how far apart they may be, and what
    came of it. Experiments whose data are missing are named, the others run, and the exit code
    is 5. An interrupt keeps what is done; beside an earlier result, in DIR.interrupted.

    All take about five minutes with data on two processors, one without.
    """
    from kpca_apps.cli.papers.run import run_experiments

    if run_experiments(context, name, options):
        raise typer.Exit(SOME_FAILED)


@command(app, only="quiet")
def fetch(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of the data files.", show_default=False, parser=folder_name
        ),
    ],
    options: PapersOptions,
) -> None:
    """Fetch the data files that may not be passed on, into a folder for kpca papers run --data.

    Five megabytes from public copies on GitHub; each file is checked by its SHA-256, and what is
    there already is left alone. The files state no licence: use them as their sources allow.
    """
    from kpca_apps.cli.papers.fetch import fetch_files

    if fetch_files(Console(options.quiet), folder):
        raise typer.Exit(SOME_FAILED)
