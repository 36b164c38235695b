"""Command lines that a report shows: how to get it again, and what to do next.

They work when pasted in the folder where the command was run: paths stand as they were typed. Only
an absolute path outside that folder is cut to its name, for a report is sent on, and where its
input lay on one machine is nobody's business; the sentence beside the command then says what is
missing.
"""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from kpca_apps.files.names import safe_stem
from kpca_apps.novelty.result import ScreeningResult

__all__ = ["command_line", "next_steps", "reproduce", "reproduce_denoising"]

# What stands for a table that came from standard input, which no later command can read again.
PIPED = "TABLE.csv"
# Options that change no number in a result: left out of the command that reproduces it.
_PASSING = frozenset(
    (
        *("force", "json", "quiet", "config", "dry_run", "preview"),
        *("jobs", "workers", "scheduler"),
    )
)
_PATHS = ("table", "reference", "model", "out", "inputs", "data")


def reproduce(context: typer.Context, *, replacing: bool = True) -> str:
    """Write the command line that gives the same result, whatever it took to ask for it.

    Parameters
    ----------
    context : typer.Context
        Of the command that was run.
    replacing : bool
        Whether it replaces the result it repeats.
    """
    return command_line(_words(context, {}) + ["--force"] * replacing)


def reproduce_denoising(context: typer.Context, **changes: Any) -> str:
    """Write the command line that gives the same images; what is done is not done again."""
    return command_line(_words(context, changes))


def next_steps(
    context: typer.Context, result: ScreeningResult, *, folder: str, saved: str | None
) -> tuple[tuple[str, str], ...]:
    """Say the commands a reader would want next.

    Parameters
    ----------
    context : typer.Context
        Of the command that was run.
    result : ScreeningResult
        What was found.
    folder : str
        The folder it was written to, unless the command says it.
    saved : str or None
        Name of the model saved in the folder; ``None`` where the model was given.

    Returns
    -------
    tuple of (str, str)
        A sentence and its command.
    """
    params = context.params
    out = str(params["out"] or folder)
    model = str(params["model"]) if saved is None else f"{out}/{saved}"
    held = "" if saved is None else ", saved beside the report (it holds rows of the table)"
    steps = [
        (
            f"Score new rows with this model{held}" + _where(model),
            command_line(["kpca", "novelty", "score", _shown(model), "NEW_TABLE.csv"]),
        )
    ]
    top = result.ranked[0]
    n_used = sum(column.used for column in result.columns)
    if saved is not None and top.reasons and n_used > 1:
        steps.append(_without(context, top.reasons[0].column, out))
    place = ["--row", _row_word(result)] if top.line is None else ["--line", str(top.line)]
    for name in ("delimiter", "encoding"):
        if params[name] is not None:
            place += [f"--{name}", params[name]]
    table = params["table"]
    words = ["kpca", "novelty", "explain", _shown(model), _shown(table), *place]
    steps.append(("See all reasons of one row" + _where(model, table), command_line(words)))
    return tuple(steps)


def _row_word(result: ScreeningResult) -> str:
    """Name the oddest row for ``--row``, which looks for an id first and for a number then."""
    ids = [row.id for row in result.ranked]
    top = result.ranked[0]
    return top.id if top.id and ids.count(top.id) == 1 else str(top.row)


def _without(context: typer.Context, column: str, out: str) -> tuple[str, str]:
    """Write the step that screens again without a column, into a folder of its own."""
    declared = {
        name: [value for value in context.params[name] or () if value != column]
        for name in ("categorical", "numeric")
    }
    beside = f"{out}-without-{safe_stem(column)}"
    changes = {**declared, "exclude": [*(context.params["exclude"] or ()), column], "out": beside}
    return (
        "Screen again without the column that made the first row odd"
        + _where(context.params["table"], beside),
        command_line(_words(context, changes)),
    )


def command_line(words: list[str]) -> str:
    r"""Join words so that a shell reads them back, and a terminal obeys none of them.

    Examples
    --------
    >>> print(command_line(["kpca", "--exclude", "body mass", "--exclude", "\x03rm\n"]))
    kpca --exclude 'body mass' --exclude $'\x03rm\x0a'
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    """Quote a word with characters that cannot be shown, as bash and zsh read it."""
    shown = (
        "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        if not char.isprintable()
        else f"\\{char}"
        if char in "\\'"
        else char
        for char in word
    )
    return f"$'{''.join(shown)}'"


def _words(context: typer.Context, changes: dict[str, Any]) -> list[str]:
    """Return the words of a command as it was understood, with some options changed."""
    told = {**context.params, **changes}
    words = context.command_path.split()
    options: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = told.get(name)
        if name in _PASSING or value is None or value == parameter.default:
            continue
        flag = max(parameter.opts, key=len)
        if not flag.startswith("--"):
            words += [_word(name, one) for one in _several(value)]
        elif isinstance(value, bool):
            options.append(flag if value else max(parameter.secondary_opts, key=len))
        else:
            options += [word for one in _several(value) for word in (flag, _word(name, one))]
    return [*words, *options]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _word(name: str, value: object) -> str:
    """Write one value as a word of a command line."""
    if isinstance(value, Enum):
        return str(value.value)
    return _shown(str(value)) if name in _PATHS else str(value)


def _shown(path: str) -> str:
    """Write a path as it works in the working folder, else by its name alone."""
    if path == "-":
        return PIPED
    given, here = Path(path), Path.cwd()
    if not given.is_absolute():
        # A name that begins like an option is told apart by its folder.
        return f"./{path}" if path.startswith("-") else path
    if given.is_relative_to(here):
        return str(given.relative_to(here))
    # A folder of results is named whole: the file in it alone would not be found.
    return "/".join(given.parts[-2:]) if given.name == "model.kpca" else given.name


def _where(*paths: str) -> str:
    """Say which paths were cut to names, and what stands for a pipe."""
    cut = [_shown(path).partition("/")[0] for path in paths if _is_cut(path)]
    names = " and of ".join(dict.fromkeys(cut))
    missing = f"; put the full path of {names} in place of the name" if cut else ""
    return missing + (f"; {PIPED} stands for the table that was piped in" if "-" in paths else "")


def _is_cut(path: str) -> bool:
    return Path(path).is_absolute() and not Path(path).is_relative_to(Path.cwd())
