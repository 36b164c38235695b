"""Options of the commands: on the command line, in the help, and in a config file."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from inspect import Parameter
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from kpca_apps.errors import ConfigError, InputError, KpcaError, about, flag_of, opening
from kpca_apps.names import one_line, shown, suggest
from kpca_apps.options import THRESHOLD, Options
from kpca_apps.system.files.texts import read_text
from kpca_apps.system.limits import require_addresses
from kpca_apps.tables.read.uri import refuse_password

MAX_CONFIG_BYTES = 1_000_000
SOME_FAILED, ROWS_FLAGGED = 5, 6  # exit codes

_CONFIG = "kpca_apps.config"
# Typer may contain a copy of click, so take the base of usage errors from typer itself.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class _WithoutTypes:
    """Hide the types that typer's help shows beside arguments and flags, such as <bool>."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            text = one.metavar if one.param_type_name == "option" else None
            one.display_type_rich = lambda ctx, text=text: text
        return found


class CommandGroup(_WithoutTypes, TyperGroup):
    """A group of commands."""


def group(name: str, help: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(
        name=name, help=help, cls=CommandGroup, no_args_is_help=True, rich_markup_mode="rich"
    )


def number(text: object) -> float:
    """Parse a number from the command line or a config file."""
    with suppress(ValueError):
        return float(str(text))
    raise typer.BadParameter(f"{shown(text)} is not a number.")


def whole_number(text: object) -> int:
    """Parse a whole number from the command line or a config file."""
    with suppress(ValueError):
        return int(str(text))
    raise typer.BadParameter(f"{shown(text)} is not a whole number.")


def count_or_share(text: object) -> float:
    """Parse a whole number, or a share below 1; refuse 1.0, which could be either."""
    with suppress(ValueError):
        return int(str(text))
    if (value := number(text)) < 1:
        return value
    raise typer.BadParameter(f"{shown(str(text))} is neither a whole number nor a share below 1.")


_PARSERS: dict[frozenset[type], Callable[[object], float]] = {
    frozenset([float]): number,
    frozenset([int]): whole_number,
    frozenset([int, float]): count_or_share,
}


class CarefulCommand(_WithoutTypes, TyperCommand):
    """A command that refuses an empty word, and refuses an option whose value is missing."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the command's name in the usage line."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(one.metavar) for one in arguments)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse words; raise ConfigError for a missing value, such as an unset shell variable."""
        if ctx.resilient_parsing:  # shell completion of an unfinished line
            return super().parse_args(ctx, args)
        options: dict[str, Any] = {
            flag: parameter
            for parameter in self.get_params(ctx)
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag.startswith("-")
        }
        waiting = ""  # option whose value is the next word
        given: dict[str, str] = {}  # option that has a negative flag -> the flag given
        for word in args:
            flag, sign, value = word.partition("=")
            if not word or (sign and not value and flag in options):
                name = waiting or flag or "a word of the command"
                raise ConfigError(f"{name} is empty: give a value")
            found = options.get(word)
            if waiting and found:
                raise ConfigError(
                    f"{waiting} needs a value, but the option {word} follows: give a value, or "
                    f"write {waiting}={word} if the value is {word}"
                )
            if found and found.secondary_opts and given.setdefault(found.name, word) != word:
                raise ConfigError(f"{given[found.name]} and {word} cannot be combined: give one")
            waiting = word if found and not found.is_flag else ""
            if word == "--":
                break
        if waiting:
            raise ConfigError(f"{waiting} needs a value: give one after it")
        try:
            rest = super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx  # type: ignore[attr-defined]
            raise
        _reconcile(ctx)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; add the name of the config file to an error about one of its options."""
        try:
            return super().invoke(ctx)
        except KpcaError as error:
            if name := config_at_fault(ctx, str(error)):
                error.args = (str(error), name)
            raise


def _reconcile(ctx: Any) -> None:
    """Let thresholds of the command line replace those of the config file; join --hide of both."""
    config = ctx.default_map or {}
    typed = [n for n in ctx.params if ctx.get_parameter_source(n).name == "COMMANDLINE"]
    panels = {one.name: getattr(one, "rich_help_panel", None) for one in ctx.command.params}
    if any(panels[name] == THRESHOLD for name in typed):
        ctx.params |= {n: None for n in config if panels[n] == THRESHOLD and n not in typed}
    if "hide" in typed:
        hidden = map(str, config.get("hide", ()))  # TOML may give column names as numbers
        ctx.params["hide"] = [*dict.fromkeys([*hidden, *ctx.params["hide"]])]


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Read default options from a TOML file, which options on the command line override."""
    if path is None:
        return None
    name = one_line(path.name)
    with about(name), opening(name, path):
        content = read_text(path, "a config file", MAX_CONFIG_BYTES)
    try:
        values = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: options must be TOML, such as quiet = true: {error}") from error
    parameters = {
        flag.removeprefix("--"): parameter
        for parameter in context.command.params
        for flag in parameter.opts
        if flag.startswith("--") and flag not in ("--config", "--help")
    }
    for key, value in values.items():
        if key not in parameters:
            raise ConfigError(
                f"{name}: {context.command_path} has no option {one_line(key)!r}; "
                f"keys are options without the leading --.{suggest(key, parameters)}"
            )
        parameter: Any = parameters[key]
        items = value if isinstance(value, list) else [value]
        expected = ""
        if any(isinstance(item, (list, dict)) for item in items):
            expected = "one value, or a list of them" if parameter.multiple else "one value"
        elif isinstance(value, list) != bool(parameter.multiple):
            expected = f'a list, as in {key} = ["..."]' if parameter.multiple else "one value"
        elif isinstance(value, bool) != bool(parameter.is_flag):
            expected = "true or false" if parameter.is_flag else "a value, not true or false"
        elif parameter.multiple and any(isinstance(item, bool) for item in items):
            expected = "names, not true or false"
        if "" in items:
            raise ConfigError(f"{name}: {key} is empty: give a value, or leave it out.")
        with about(name):
            for item in items:
                refuse_password(str(item))
        if expected:
            raise ConfigError(f"{name}: {key} is {shown(value)}; give {expected}.")
    context.default_map = {str(parameters[key].name): value for key, value in values.items()}
    context.meta[_CONFIG] = name
    return path


def config_at_fault(context: Any, message: str) -> str:
    """Return the name of the config file if it sets an option that a message names, or else ""."""
    flags = {*re.findall(r"--[\w-]+", message)}
    for one in [] if context is None else context.command.params:
        source = context.get_parameter_source(one.name)
        if flags & {*one.opts, *one.secondary_opts} and source and source.name == "DEFAULT_MAP":
            return str(context.meta[_CONFIG])
    return ""


COMMON = [one.name for one in fields(Options)]  # type: ignore[arg-type]  # last in the help


def command(
    app: typer.Typer, *, only: str = "", without: str = ""
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Register a function as a command, with the options of its parameter ``options``.

    The function returns the exit code, None for 0.
    The command has the options named in `only`, or all except those in `without`; other fields are
    None. A parameter of the function with the same name as a field replaces that option.
    """

    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        hints = get_type_hints(function, include_extras=True)
        parameters = {
            name: one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, one in inspect.signature(function).parameters.items()
        }
        del parameters["options"]
        own, kind = list(parameters), hints["options"]
        every, types = fields(kind), get_type_hints(kind)
        chosen = {*only.split()} or {one.name for one in every} - {*without.split(), *own}
        for one in sorted(every, key=lambda one: one.name in COMMON):
            if one.name not in chosen:
                continue
            more, hint = dict(one.metadata["option"]), types[one.name]
            if numbers := frozenset([hint, *get_args(hint)]) & {int, float}:
                more["parser"] = _PARSERS[numbers]
            if one.name == "config":
                more |= {"is_eager": True, "callback": read_config}
            flags = one.metadata["flags"] or (flag_of(one.name),)
            parameters[one.name] = Parameter(
                one.name,
                Parameter.KEYWORD_ONLY,
                default=typer.Option(one.default, *flags, **more),
                annotation=hint if len(numbers) < 2 else float | None,  # Typer refuses int | float
            )

        def run(**values: Any) -> int | None:
            require_addresses()
            options = kind(**{one.name: values.get(one.name) for one in every})
            return function(**{name: values[name] for name in own}, options=options)

        # Typer reads the parameters of a command from the signature and the annotations.
        run.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        app.command(function.__name__, help=paragraphs(function), cls=CarefulCommand)(run)
        return function

    return register


def paragraphs(function: Callable[..., object]) -> str:
    """Return the docstring of a function, a line per paragraph, for the terminal to wrap."""
    parts = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)
