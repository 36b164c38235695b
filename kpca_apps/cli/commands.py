"""Command lines shown in a report: one that reproduces the report, and next steps.

The commands work when pasted in the folder where the first command ran. An absolute path outside
that folder is cut to its name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kpca_apps.errors import flag_of
from kpca_apps.names import name_key, safe_stem, without_password
from kpca_apps.options import READING, NoveltyOptions
from kpca_apps.tables.read.uri import scheme_of, with_file

if TYPE_CHECKING:
    from kpca_apps.novelty.result import ScreeningResult

PIPED = "TABLE.csv"  # stands for a table from standard input
_IN_RUNS = ("model.kpca", "report-marked.html")
# Options that do not affect results are left out of the command that reproduces them.
_NO_NUMBER = frozenset(
    "force to_send junit fail_on_flagged json quiet config dry_run preview jobs workers scheduler "
    "work_dir".split()
)
_PATHS = frozenset("table reference accept marks model per_image out inputs data old new".split())


def reproduce(
    context: typer.Context, params: Mapping[str, Any] | None = None, *, replacing: bool = False
) -> str:
    """Return the command that reproduces a run.

    Options are those of the run, or `params`. With `replacing`, the command overwrites the result.
    """
    params = context.params if params is None else params
    words, options = context.command_path.split(), list[str]()
    for parameter in context.command.params:
        name = str(parameter.name)
        value = params.get(name)
        if name in _NO_NUMBER or value is None or value == parameter.default:
            continue
        flag = max(parameter.opts, key=len)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        items = value if isinstance(value, list | tuple) else [value]
        values = [portable(str(item)) if name in _PATHS else str(item) for item in items]
        if not flag.startswith("--"):
            words += values
        elif isinstance(value, bool):
            options.append(flag if value else max(parameter.secondary_opts, key=len))
        else:
            options += [word for text in values for word in (flag, text)]
    return command_line([*words, *options, *["--force"] * replacing])


def next_steps(
    context: typer.Context, result: ScreeningResult, *, folder: str, saved: str | None
) -> tuple[tuple[str, str], ...]:
    """Return commands for the next steps, each with a sentence.

    `folder` contains the result, and `saved` is the name of the model file in it, if any.
    """
    from kpca_apps.novelty.redact import masked

    params, top = masked(context.params, result), result.ranked[0]
    table, out = [*params["table"]], str(params["out"] or folder)
    model = str(params["model"]) if saved is None else f"{out}/{saved}"
    where = "" if saved is None else ", saved beside the report (it holds rows of the table)"
    score = ["kpca", "novelty", "score", portable(model), "NEW_TABLE.csv"]
    steps = {f"Score new rows with this model{where}{_missing(model)}": command_line(score)}
    if saved is not None and top.reasons and sum(column.used for column in result.columns) > 1:
        odd = top.reasons[0].column
        beside = f"{out}-without-{safe_stem(odd)}"
        changed: dict[str, Any] = {
            name: [column for column in params[name] or () if name_key(column) != name_key(odd)]
            for name in ("categorical", "numeric")
        }
        changed |= {"exclude": [*(params["exclude"] or ()), odd], "out": beside, "write_to": None}
        sentence = "Screen again without the column that made the first row odd"
        steps[sentence + _missing(*table, beside)] = reproduce(context, params | changed)
    # `--row` first looks for a row with this id, then for a row with this number.
    is_named = top.id and [row.id for row in result.ranked].count(top.id) == 1
    row = str(top.id) if is_named else str(top.row)
    words = ["kpca", "novelty", "explain", portable(model), *map(portable, table)]
    by_line = top.line is not None and result.source.file_column is None
    words += ["--line", str(top.line)] if by_line else ["--row", row]
    for name in READING:
        if params[name] != getattr(NoveltyOptions, name):
            words += [flag_of(name), str(params[name])]
    if saved is None:  # an earlier run saved the model: give `--id` and `--hide` of the current run
        words += ["--id", params["id"]] if params["id"] else []
        words += [word for column in params["hide"] or () for word in ("--hide", column)]
    judged = {flag_of(name): params[name] for name in ("accept", "marks") if params[name]}
    words += [word for flag, path in judged.items() for word in (flag, portable(path))]
    missing = _missing(model, *table, *judged.values())
    steps[f"See all reasons of one row{missing}"] = command_line(words)
    if saved is not None:
        beside = f"{out}-again"
        again = {"marks": f"{out}/report-marked.html", "out": beside, "write_to": None}
        sentence = "Mark rows in this page, save it, and screen again with what you marked"
        steps[sentence + _missing(*table, beside)] = reproduce(context, params | again)
    return tuple(steps.items())


def command_line(words: list[str]) -> str:
    """Join words to a command line for a shell, without passwords."""
    words = list(map(without_password, words))
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    quoted = re.sub(r"[\\']", r"\\\g<0>", word)
    escapes = {
        char: "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in quoted
        if not char.isprintable()
    }
    return f"$'{''.join(escapes.get(char, char) for char in quoted)}'"


def portable(path: str) -> str:
    """Return a path relative to the working folder, or only the name of a path outside."""
    if scheme_of(path) is not None:
        return with_file(path, portable)
    given, here = Path(path), Path.cwd()
    if path == "-":
        return PIPED
    if _is_cut(path):
        return "/".join(given.parts[-2:]) if given.name in _IN_RUNS else given.name
    if given.is_absolute():
        return str(given.relative_to(here))
    return f"./{path}" if path.startswith("-") else path


def _is_cut(path: str) -> bool:
    if scheme_of(path) is not None:
        return with_file(path, portable) != path
    return Path(path).is_absolute() and not Path(path).is_relative_to(Path.cwd())


def _missing(*paths: str) -> str:
    shown = [portable(path) for path in paths if _is_cut(path)]
    cut = dict.fromkeys(path if scheme_of(path) else path.partition("/")[0] for path in shown)
    missing = f"; put the full path of {' and of '.join(cut)} in place of the name" if cut else ""
    return missing + f"; {PIPED} stands for the table that was piped in" * ("-" in paths)
