"""The options of ``kpca novelty``, and how they become what the application is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kpca_apps.cli.shared import FILES, TALK, option

if TYPE_CHECKING:
    from kpca_apps.novelty.screening.options import ScreeningOptions

__all__ = ["given_options", "screening_options"]


KernelName = Literal["rbf", "laplacian", "linear", "polynomial", "cosine"]
CalibrationName = Literal["auto", "leave-one-out", "split"]
WorkersName = Literal["threads", "processes", "dask"]
TableFormat = Literal["csv", "parquet"]

_RULES = "Which rows are flagged (give one)"
_COLUMNS = "Columns"
_MODEL = "Model"
_WORK = "Work"

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
    option(
        "--share",
        help="Share of the table to flag: a choice. By default 0.01 for a table screened by "
        "itself.",
        panel=_RULES,
        metavar="S",
    ),
]
Count = Annotated[
    int | None,
    option("--count", help="Number of rows to flag: a choice.", panel=_RULES, metavar="N"),
]
Alpha = Annotated[
    float | None,
    option(
        "--alpha",
        help="False-alarm rate; needs clean rows. By default 0.05 where they are given.",
        panel=_RULES,
        metavar="A",
    ),
]
Fdr = Annotated[
    float | None,
    option(
        "--fdr",
        help="Expected share of false discoveries on the list; needs clean rows.",
        panel=_RULES,
        metavar="Q",
    ),
]
Label = Annotated[
    str | None,
    option(
        "--label",
        help="Known labels: kept out of the model, used to judge it.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
RequiredLabel = Annotated[
    str, option("--label", help="The known labels.", panel=_COLUMNS, metavar="COL")
]
Positive = Annotated[
    str | None,
    option("--positive", help="Label that means outlier.", panel=_COLUMNS, metavar="VALUE"),
]
IdColumn = Annotated[
    str | None,
    option(
        "--id",
        help="Column that names the rows; by default an identifier that differs in each.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
Exclude = Annotated[
    list[str] | None,
    option("--exclude", help="Leave a column out. Repeatable.", panel=_COLUMNS, metavar="COL"),
]
Categorical = Annotated[
    list[str] | None,
    option(
        "--categorical",
        help="Take a column as categories. Repeatable.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
Numeric = Annotated[
    list[str] | None,
    option(
        "--numeric", help="Take a column as numbers. Repeatable.", panel=_COLUMNS, metavar="COL"
    ),
]
Hide = Annotated[
    list[str] | None,
    option(
        "--hide",
        help="Keep a column's values out of the report. Repeatable.",
        panel=_COLUMNS,
        metavar="COL",
    ),
]
DayFirst = Annotated[
    bool | None,
    option(
        "--dayfirst/--monthfirst",
        help="Order of day and month where dates leave it open.",
        panel=_COLUMNS,
    ),
]
Explain = Annotated[
    int,
    option(
        "--explain",
        help="Rows that get reasons; flagged ones do up to 500. 0 for none.",
        panel=_MODEL,
        metavar="N",
    ),
]
Kernel = Annotated[
    KernelName | None,
    option(
        "--kernel",
        help="One kernel on the columns as they come, instead of the mean over four views: rbf, "
        "laplacian, linear, polynomial or cosine.",
        panel=_MODEL,
        metavar="NAME",
    ),
]
Gamma = Annotated[
    float | None,
    option("--gamma", help="Kernel width: exp(-gamma r^2).", panel=_MODEL, metavar="G"),
]
Sigma = Annotated[
    float | None,
    option("--sigma", help="Kernel width: exp(-r^2 / (2 sigma^2)).", panel=_MODEL, metavar="S"),
]
Components = Annotated[
    int | None,
    option(
        "--components",
        help="Hard number of kernel components instead of the soft cut (Hoffmann 2007).",
        panel=_MODEL,
        metavar="Q",
    ),
]
Ridge = Annotated[
    float | None,
    option(
        "--ridge",
        help="Ridge of the soft cut, as a share of the variance.",
        panel=_MODEL,
        metavar="R",
    ),
]
Landmarks = Annotated[
    int | None,
    option("--landmarks", help="Rows that span the model.", panel=_MODEL, metavar="M"),
]
Calibration = Annotated[
    CalibrationName,
    option(
        "--calibration",
        help="What the threshold is calibrated on: auto, leave-one-out or split; needs clean rows.",
        panel=_MODEL,
        metavar="HOW",
    ),
]
Seed = Annotated[int, option("--seed", help="Of every draw.", panel=_MODEL, metavar="N")]
Jobs = Annotated[
    int | None,
    option(
        "--jobs",
        help="Threads, processes or Dask workers; changes no number. By default one thread, and "
        "one worker a core for a table read in parts.",
        panel=_WORK,
        metavar="N",
    ),
]
Workers = Annotated[
    WorkersName | None,
    option(
        "--workers",
        help="Who works on a table of more than 100,000 rows, which is read in parts: threads, "
        "processes, or dask for a cluster on this machine.",
        panel=_WORK,
        metavar="KIND",
    ),
]
Scheduler = Annotated[
    str | None,
    option(
        "--scheduler",
        help="Address of a Dask scheduler whose workers see the same files, as in "
        "tcp://10.0.0.1:8786.",
        panel=_WORK,
        metavar="ADDRESS",
    ),
]
Out = Annotated[
    Path | None,
    option("--out", help="Folder to write.", panel=FILES, metavar="DIR"),
]
Force = Annotated[
    bool, option("--force", help="Replace what an earlier run left there.", panel=FILES)
]
Format = Annotated[TableFormat, option("--format", help="Format of the scored table.", panel=FILES)]
Delimiter = Annotated[
    str | None,
    option("--delimiter", help="Between the cells; found out by itself.", panel=FILES, metavar="C"),
]
Encoding = Annotated[
    str | None,
    option("--encoding", help="Of the text; found out by itself.", panel=FILES, metavar="NAME"),
]
Json = Annotated[bool, option("--json", help="Print the result as JSON on stdout.", panel=TALK)]
DryRun = Annotated[bool, option("--dry-run", help="Print the column plan and stop.", panel=TALK)]

_MODEL_NAMES = {"components": "n_components", "landmarks": "n_landmarks"}
_COLUMN_NAMES = ("label", "id", "exclude", "categorical", "numeric", "hide", "dayfirst")


def given_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `ScreeningOptions` among the parameters of a command, columns apart."""
    from kpca_apps.novelty.screening.options import ScreeningOptions

    known = {field.name for field in fields(ScreeningOptions)}
    named = {_MODEL_NAMES.get(name, name): value for name, value in params.items()}
    return {name: value for name, value in named.items() if name in known}


def screening_options(params: Mapping[str, Any]) -> ScreeningOptions:
    """Turn the parameters of a command into what the application is told."""
    from kpca_apps.novelty.screening.options import ScreeningOptions
    from kpca_apps.novelty.table.columns import ColumnOptions

    columns: dict[str, Any] = {
        name: params[name] for name in _COLUMN_NAMES if params.get(name) is not None
    }
    for name, value in columns.items():
        columns[name] = tuple(value) if isinstance(value, list) else value
    return ScreeningOptions(**given_options(params), columns=ColumnOptions(**columns))
