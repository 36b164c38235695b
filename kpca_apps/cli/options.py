"""Options of commands: each is declared once, as a field, and all reach a command as one object."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from inspect import Parameter
from pathlib import Path
from typing import Any, dataclass_transform, get_type_hints

import typer

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest

MAX_CONFIG_BYTES = 1_000_000


def panel(title: str) -> Callable[..., Any]:
    """Return what declares the options that stand under a title of the help."""

    def option(
        help: str,
        metavar: str | None = None,
        default: Any = None,
        flags: tuple[str, ...] = (),
        **more: Any,
    ) -> Any:
        """Declare a field as an option: ``--its-name``, unless other `flags` are given."""
        more |= {"help": help, "metavar": metavar, "rich_help_panel": title}
        return field(default=default, metadata={"flags": flags, "option": more})

    return option


files, talk = panel("Reading and writing"), panel("Talking")


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
    parameters = {
        flag.removeprefix("--"): parameter
        for parameter in context.command.params
        for flag in parameter.opts
        if flag.startswith("--") and flag not in ("--config", "--help")
    }
    for key, value in values.items():
        if key not in parameters:
            raise ConfigError(
                f"{name}: no option {one_line(key)!r} in {context.command_path}; "
                f"keys are options without their dashes.{suggest(key, parameters)}"
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
        if expected:
            raise ConfigError(f"{name}: {key} is {one_line(str(value), 40)}; give {expected}.")
    context.default_map = {str(parameters[key].name): value for key, value in values.items()}
    return path


@dataclass_transform(frozen_default=True)
class Options:
    """The options of some commands, declared by `panel`; these are what most commands have."""

    json: bool = talk("Print the result as JSON on stdout.", default=False)
    quiet: bool = talk("Say only errors.", default=False, flags=("--quiet", "-q"))
    dry_run: bool = talk("Print what would be done and stop.", default=False)
    config: Path | None = talk(
        "Take options from a TOML file, by their names without dashes: quiet = true.",
        "FILE",
        is_eager=True,
        callback=read_config,
    )

    def __init_subclass__(cls) -> None:
        """Make a dataclass of each subclass."""
        dataclass(frozen=True)(cls)


dataclass(frozen=True)(Options)
# They stand behind the options of a command's own.
COMMON = [one.name for one in fields(Options)]  # type: ignore[arg-type]


def command(
    app: typer.Typer, *, only: str = "", without: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function whose parameter ``options`` is an `Options` as a command.

    The command has the options named in `only`, or all but those in `without`; the fields of the
    others are None. The function's other parameters stand before them; one of the name of a
    field replaces that option. The terminal alone wraps the paragraphs of the help.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        parameters = {
            name: one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            for name, one in inspect.signature(function).parameters.items()
        }
        del parameters["options"]
        own, kind = list(parameters), hints["options"]
        every, types = fields(kind), get_type_hints(kind)
        chosen = only.split() or {one.name for one in every} - {*without.split(), *own}
        for one in sorted(every, key=lambda one: one.name in COMMON):
            if one.name in chosen:
                flags = one.metadata["flags"] or (f"--{one.name.replace('_', '-')}",)
                default = typer.Option(one.default, *flags, **one.metadata["option"])
                parameters[one.name] = Parameter(
                    one.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[one.name]
                )

        def run(**values: Any) -> None:
            options = kind(**{one.name: values.get(one.name) for one in every})
            function(**{name: values[name] for name in own}, options=options)

        # Typer finds a command's parameters by its signature and annotations.
        run.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        app.command(function.__name__, help=text)(run)
        return function

    return register
