"""What the commands of ``kpca papers`` can be told."""

from __future__ import annotations

from pathlib import Path

import typer

from kpca_apps.cli.options import Options, files, general


def folder_name(text: str) -> Path:
    """Take the name of a folder; an empty one, as of an unset variable, is not the current one."""
    if not text:
        raise typer.BadParameter("the name is empty; the current folder is called .")
    return Path(text)


class PapersOptions(Options):
    """The options of the commands; each command takes those of use to it."""

    data: Path | None = files("Folder of the data files.", "DIR", parser=folder_name)
    out: Path | None = files(
        "Folder of the results; kpca-papers-NAME unless told.", "DIR", parser=folder_name
    )
    force: bool = files("Replace the results of an earlier run.", default=False)
    json: bool = general("Print the result as JSON.", default=False)
