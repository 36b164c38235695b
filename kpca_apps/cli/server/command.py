"""``kpca mcp``: the server as a command."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli.options import whole_number
from kpca_apps.errors import ConfigError, install_extra


def mcp(
    root: Annotated[
        list[Path],
        typer.Option(
            "--root",
            help="Folder to read files from and to write runs to. Repeatable.",
            metavar="DIR",
        ),
    ],
    hide: Annotated[
        list[str] | None,
        typer.Option(
            "--hide",
            help="Column whose values are never shown or written. A table without it is refused. "
            "Repeatable.",
            metavar="COL",
        ),
    ] = None,
    largest: Annotated[
        int,
        typer.Option(
            "--largest", help="Largest file that is read, in MB.", metavar="MB", parser=whole_number
        ),
    ] = 200,
) -> None:
    """Serve assistants (Model Context Protocol).

    An assistant starts this command and speaks to it over standard input and output. It can screen
    and score tables, explain rows, accept rows and screen again, compare runs, find and check
    rules, and preview denoising. Files outside the folders of --root are neither read nor written.
    It needs the extra mcp.
    """
    try:
        spec = find_spec("mcp.server.mcpserver")  # other versions of mcp lack this kind of server
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise ConfigError(f"kpca mcp needs an extra; install it with: {install_extra('mcp')}")
    from kpca_apps.cli.server.roots import MEGABYTE, Roots

    if largest < 1:
        raise ConfigError(f"--largest must be at least 1, got {largest}")
    roots = Roots.of(root, largest * MEGABYTE)
    from kpca_apps.cli.server.serve import serve
    from kpca_apps.cli.server.tools import Tools

    serve(Tools(roots, tuple(hide or ())))
