"""The options the commands share, and how they become what the application is told."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.names import one_line, suggest

if TYPE_CHECKING:
    from kpca_apps.novelty.options import ScreeningOptions

__all__ = ["given_options", "screening_options"]


class KernelName(Enum):
    """Kernels that may be asked for by name."""

    rbf = "rbf"
    laplacian = "laplacian"
    linear = "linear"
    polynomial = "polynomial"
    cosine = "cosine"


class CalibrationName(Enum):
    """What a threshold may be calibrated on."""

    auto = "auto"
    leave_one_out = "leave-one-out"
    split = "split"


class TableFormat(Enum):
    """Formats of the scored table."""

    csv = "csv"
    parquet = "parquet"


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


_RULES = "Which rows are flagged (give one)"
_COLUMNS = "Columns"
_MODEL = "Model"
_FILES = "Reading and writing"
_TALK = "Talking"


def _option(*flags: str, help: str, panel: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel=panel, metavar=metavar, **more)


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV or otherwise delimited text (also gzipped), Parquet, JSON lines or Excel; "
        "- reads stdin.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")]

Share = Annotated[
    float | None,
    _option(
        "--share",
        help="Share of the table to flag: a choice. By default 0.01 for a table screened by "
        "itself.",
        panel=_RULES,
        metavar="S",
    ),
]
Count = Annotated[
    int | None,
    _option("--count", help="Number of rows to flag: a choice.", panel=_RULES, metavar="N"),
]
Alpha = Annotated[
    float | None,
    _option(
        "--alpha",
        help="False-alarm rate; needs clean rows. By default 0.05 where they are given.",
        panel=_RULES,
        metavar="A",
    ),
]
Fdr = Annotated[
    float | None,
    _option(
        "--fdr",
        help="Expected share of false discoveries on the list; needs clean rows.",
        panel=_RULES,
        metavar="Q",
    ),
]
Label = Annotated[
    str | None,
    _option(
        "--label",
        help="Known labels: kept out of the model, used to judge it.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
RequiredLabel = Annotated[
    str, _option("--label", help="The known labels.", panel=_COLUMNS, metavar="COL")
]
Positive = Annotated[
    str | None,
    _option("--positive", help="Label that means outlier.", panel=_COLUMNS, metavar="VALUE"),
]
IdColumn = Annotated[
    str | None,
    _option("--id", help="Column that names the rows.", panel=_COLUMNS, metavar="COL"),
]
Exclude = Annotated[
    list[str] | None,
    _option("--exclude", help="Leave a column out. Repeatable.", panel=_COLUMNS, metavar="COL"),
]
Categorical = Annotated[
    list[str] | None,
    _option(
        "--categorical",
        help="Take a column as categories. Repeatable.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
Numeric = Annotated[
    list[str] | None,
    _option(
        "--numeric", help="Take a column as numbers. Repeatable.", panel=_COLUMNS, metavar="COL"
    ),
]
Hide = Annotated[
    list[str] | None,
    _option(
        "--hide",
        help="Keep a column's values out of the report. Repeatable.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
DayFirst = Annotated[
    bool | None,
    _option(
        "--dayfirst/--monthfirst",
        help="Order of day and month where dates leave it open.",
        panel=_COLUMNS,
    ),
]
Explain = Annotated[
    int, _option("--explain", help="Rows that get reasons.", panel=_MODEL, metavar="N")
]
Kernel = Annotated[
    KernelName | None,
    _option(
        "--kernel",
        help="One kernel on the columns as they come, instead of the mean over four views: rbf, "
        "laplacian, linear, polynomial or cosine.",
        panel=_MODEL,
        metavar="NAME",
    ),
]
Gamma = Annotated[
    float | None,
    _option("--gamma", help="Kernel width: exp(-gamma r^2).", panel=_MODEL, metavar="G"),
]
Sigma = Annotated[
    float | None,
    _option("--sigma", help="Kernel width: exp(-r^2 / (2 sigma^2)).", panel=_MODEL, metavar="S"),
]
Components = Annotated[
    int | None,
    _option(
        "--components",
        help="Hard number of kernel components instead of the soft cut (Hoffmann 2007).",
        panel=_MODEL,
        metavar="Q",
    ),
]
Ridge = Annotated[
    float | None,
    _option(
        "--ridge",
        help="Ridge of the soft cut, as a share of the variance.",
        panel=_MODEL,
        metavar="R",
    ),
]
Landmarks = Annotated[
    int | None,
    _option("--landmarks", help="Rows that span the model.", panel=_MODEL, metavar="M"),
]
Calibration = Annotated[
    CalibrationName,
    _option(
        "--calibration",
        help="What the threshold is calibrated on: auto, leave-one-out or split; needs clean rows.",
        panel=_MODEL,
        metavar="HOW",
    ),
]
Seed = Annotated[int, _option("--seed", help="Of every draw.", panel=_MODEL, metavar="N")]
Jobs = Annotated[
    int | None,
    _option("--jobs", help="Threads; changes no number.", panel=_MODEL, metavar="N"),
]
Out = Annotated[
    Path | None,
    _option("--out", help="Folder to write.", panel=_FILES, metavar="DIR"),
]
Force = Annotated[
    bool, _option("--force", help="Replace what an earlier run left there.", panel=_FILES)
]
Format = Annotated[
    TableFormat, _option("--format", help="Format of the scored table.", panel=_FILES)
]
Delimiter = Annotated[
    str | None,
    _option(
        "--delimiter", help="Between the cells; found out by itself.", panel=_FILES, metavar="C"
    ),
]
Encoding = Annotated[
    str | None,
    _option("--encoding", help="Of the text; found out by itself.", panel=_FILES, metavar="NAME"),
]
Json = Annotated[
    bool, _option("--json", help="Print the result as JSON instead of a path.", panel=_TALK)
]
Quiet = Annotated[bool, _option("--quiet", "-q", help="Say only errors.", panel=_TALK)]
DryRun = Annotated[bool, _option("--dry-run", help="Print the column plan and stop.", panel=_TALK)]
Config = Annotated[
    Path | None,
    _option(
        "--config",
        help='Take options from a TOML file: share = 0.02, exclude = ["notes"].',
        panel=_TALK,
        metavar="FILE",
        is_eager=True,
        callback=read_config,
    ),
]

_MODEL_NAMES = {"components": "n_components", "landmarks": "n_landmarks"}
_COLUMN_NAMES = ("label", "id", "exclude", "categorical", "numeric", "hide", "dayfirst")


def given_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `ScreeningOptions` among the parameters of a command, columns apart."""
    from kpca_apps.novelty.options import ScreeningOptions

    known = {field.name for field in fields(ScreeningOptions)}
    named = {_MODEL_NAMES.get(name, name): value for name, value in params.items()}
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in named.items()
        if name in known
    }


def screening_options(params: Mapping[str, Any]) -> ScreeningOptions:
    """Turn the parameters of a command into what the application is told."""
    from kpca_apps.novelty.columns import ColumnOptions
    from kpca_apps.novelty.options import ScreeningOptions

    columns: dict[str, Any] = {
        name: params[name] for name in _COLUMN_NAMES if params.get(name) is not None
    }
    for name, value in columns.items():
        columns[name] = tuple(value) if isinstance(value, list) else value
    return ScreeningOptions(**given_options(params), columns=ColumnOptions(**columns))
