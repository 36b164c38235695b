"""What the commands of both applications share: declarations, options, short paths."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest

__all__ = ["FILES", "TALK", "Config", "Quiet", "command_of", "near", "option"]

FILES = "Reading and writing"
TALK = "Talking"
MAX_CONFIG_BYTES = 1_000_000


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a TOML file; what stands on the command line wins."""
    if path is None:
        return None
    name = one_line(path.name)
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES or not path.is_file():
            raise InputError(f"{name}: a config file is a regular file of less than 1 MB.")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        # Besides bad TOML and bad UTF-8: numbers of thousands of digits, brackets without end.
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: not valid TOML: {error}") from error
    names = {
        flag.removeprefix("--"): parameter.name
        for parameter in context.command.params
        for flag in parameter.opts
        if flag.startswith("--") and flag not in ("--config", "--help")
    }
    for key in values:
        if key not in names:
            raise ConfigError(
                f"{name}: no option {one_line(key)!r} in {context.command_path}; "
                f"keys are options without their dashes.{suggest(key, names)}"
            )
    context.default_map = {str(names[key]): value for key, value in values.items()}
    return path


def option(*flags: str, help: str, panel: str, metavar: str | None = None, **more: Any) -> Any:
    """Declare an option that stands in a panel of the help."""
    return typer.Option(*flags, help=help, rich_help_panel=panel, metavar=metavar, **more)


Quiet = Annotated[bool, option("--quiet", "-q", help="Say only errors.", panel=TALK)]
Config = Annotated[
    Path | None,
    option(
        "--config",
        help="Take options from a TOML file, by their names without dashes: quiet = true.",
        panel=TALK,
        metavar="FILE",
        is_eager=True,
        callback=read_config,
    ),
]


def command_of(app: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what registers a command; the terminal alone wraps the paragraphs of its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return app.command(help=text)(function)

    return register


def near(path: Path) -> Path:
    """Shorten a path below the working folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
