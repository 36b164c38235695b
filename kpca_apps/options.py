"""Options, each declared once for the commands, config files and Python functions.

A field of an options class states the type, default, limits and help of one option.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, dataclass_transform, get_args, get_origin, get_type_hints

from kpca_apps.errors import OptionError, ParameterError, flag_of
from kpca_apps.names import one_line, shown, suggest

MethodName = Literal["blocks", "hoffmann"]
CalibrationName = Literal["auto", "leave-one-out", "split"]
LearnFrom = Literal["sample", "all"]
WorkersName = Literal["threads", "processes", "dask"]
TableFormat = Literal["csv", "parquet", "same"]
BadLinesName = Literal["refuse", "skip"]
LayoutName = Literal["auto", "off"]
FlaggedFormat = Literal["csv", "xlsx"]
RuleFormat = Literal["text", "json", "sql", "pandera", "dqx"]

# Limits of ridge / variance. Beyond them, rounding of their sum would lose the smaller of the two.
RIDGES = (1e-12, 1e12)
_MOST = 2**53  # up to this limit, floats represent every integer exactly
MOST_JOBS, LARGEST_SEED = 1000, 2**32 - 1  # RandomState of numpy accepts no larger seed
MOST_SKIPPED = 10_000  # maximum number of lines above a header, as these lines are held in memory
OF_FILES = ("delimiter", "encoding", "sheet", "skip_rows", "bad_lines", "layout")
READING = (*OF_FILES, "as_of", "query", "table_name", "timeout")
THRESHOLD = "Threshold (give one)"  # help panel of options that exclude each other


def panel(title: str) -> Callable[..., Any]:
    """Return a function that declares options in a panel of the help."""

    def option(
        help: str,
        metavar: str | None = None,
        default: Any = None,
        flags: tuple[str, ...] = (),
        within: tuple[float, float] | None = None,
        between: tuple[float, float] | None = None,
        **more: Any,
    ) -> Any:
        """Declare a field as an option ``--its-name``, or with other `flags`.

        Numbers must be in the closed interval `within`, or in the open interval `between`. They
        must be integers if the lower limit of `within` is an integer.
        """
        more |= {"help": help, "metavar": metavar, "rich_help_panel": title}
        own = {"flags": flags, "option": more, "within": within, "between": between}
        return field(default=default, metadata=own)

    return option


files, general = panel("Reading and writing"), panel("General")


@dataclass_transform(frozen_default=True)
class Options:
    """Base class of all options, with the options that most commands share."""

    json: bool = general("Print the result as JSON on stdout.", default=False)
    quiet: bool = general("Print errors only.", default=False, flags=("--quiet", "-q"))
    dry_run: bool = general("Print what would be done, and stop.", default=False)
    config: Path | None = general(
        "TOML file with options, written without their --: quiet = true.", "FILE"
    )

    def __init_subclass__(cls) -> None:
        """Make each subclass a frozen dataclass."""
        dataclass(frozen=True)(cls)


dataclass(frozen=True)(Options)
_rule, _column = panel(THRESHOLD), panel("Columns")
_known = panel("Rows judged before")
_model, _work = panel("Model"), panel("Parallel work")


class NoveltyOptions(Options):
    """Options of screening; each command and function uses some of them."""

    share: float | None = _rule(
        "Flag this share of the rows, as you choose. Default without a reference: 0.01.",
        "S",
        between=(0.0, 1.0),
    )
    count: int | None = _rule("Flag this many rows, as you choose.", "N", within=(1, _MOST))
    alpha: float | None = _rule(
        "Flag at this false-alarm rate. Needs rows known to be normal; default with them: 0.05.",
        "A",
        between=(0.0, 1.0),
    )
    fdr: float | None = _rule(
        "Flag at this false discovery rate, the expected share of false alarms among the flagged "
        "rows. Needs rows known to be normal.",
        "Q",
        between=(0.0, 1.0),
    )
    accept: str | None = _known(
        "Table of rows that you judged fine: they are learned as normal and not listed. Usually "
        "flagged.csv with the other rows deleted. A row is accepted if it equals one of them in "
        "all columns that both tables have; an empty cell equals a missing one.",
        "FILE",
    )
    marks: str | None = _known(
        "Report of an earlier run, saved with your marks, or the accept.csv that it wrote. Rows "
        "marked fine are learned as normal and not listed, known rows are not listed, wrong rows "
        "stay first.",
        "FILE",
    )
    label: str | None = _column(
        "Column of known labels. It is kept out of the model and used to judge the result.", "COL"
    )
    positive: str | None = _column("Value of --label of outliers. Default: guessed.", "VALUE")
    id: str | None = _column(
        "Column that names the rows. Default: a column that looks like an identifier and has no "
        "repeated value.",
        "COL",
    )
    exclude: list[str] | None = _column(
        "Leave this column out of the model, not out of the results: see --hide. Repeatable.", "COL"
    )
    categorical: list[str] | None = _column("Treat this column as categorical. Repeatable.", "COL")
    numeric: list[str] | None = _column("Treat this column as numeric. Repeatable.", "COL")
    by: list[str] | None = _column(
        "Compare rows within groups that share a value of this column: one model for each group "
        "of 50 rows or more. Repeatable.",
        "COL",
    )
    hide: list[str] | None = _column(
        "Use this column, but show its values nowhere; a model file holds them. Repeatable.", "COL"
    )
    dayfirst: bool | None = _column(
        "Order of day and month in dates that can be read both ways. Default: detected.",
        flags=("--dayfirst/--monthfirst",),
    )
    explain: int = _model(
        "Number of rows explained in full. Up to 500 flagged rows are explained in full as well; "
        "further flagged rows get their first reason. 0 for none.",
        "N",
        default=100,
        within=(0, _MOST),
    )
    method: MethodName = _model(
        "How rows are scored. blocks: combined p-values of the row, its cells and the relations "
        "between columns. hoffmann: the reconstruction error of the row alone, by one RBF kernel "
        "on standardised columns (Hoffmann 2007).",
        "blocks|hoffmann",
        default="blocks",
    )
    sigma: float | None = _model(
        "For --method hoffmann: bandwidth sigma in exp(-r^2 / (2 sigma^2)), in standard "
        "deviations of the columns. Default: r^2 = 2 sigma^2 at the median squared distance of "
        "two rows.",
        "S",
        within=(1e-100, 1e100),
    )
    components: int | float | None = _model(
        "For --method hoffmann: number of kernel components, or, below 1, the share of the "
        "variance that they explain. Default: 0.8.",
        "Q",
        within=(0.0, float(_MOST)),
    )
    ridge: float | None = _model(
        "For --method blocks: regularisation of the Tikhonov filter, as a share of the "
        "variance. Default: 0.1; with a reference of n rows 0.1 / n.",
        "R",
        within=RIDGES,
    )
    n_landmarks: int | None = _model(
        "Number of landmarks of the Nystrom approximation. Default: 300, or 700 with a reference; "
        "more for --method hoffmann.",
        "M",
        within=(2, _MOST),
    )
    calibration: CalibrationName = _model(
        "How the threshold is calibrated: auto, leave-one-out or split. Needs a clean reference.",
        "HOW",
        default="auto",
    )
    learn_from: LearnFrom = _model(
        "For a table of more than 100,000 rows: learn from a sample of 100,000 rows drawn with "
        "the seed, or from all rows, which takes longer. All rows are scored.",
        "sample|all",
        default="sample",
    )
    seed: int = _model("Seed of all random draws.", "N", default=0, within=(0, LARGEST_SEED))
    jobs: int | None = _work(
        "Threads, processes or Dask workers. Default: all processors. Results do not depend on it.",
        "N",
        within=(1, MOST_JOBS),
    )
    workers: WorkersName | None = _work(
        "Executor for tables of more than 100,000 rows, which are read in parts: threads, "
        "processes, or dask for a local cluster. Default: threads.",
        "KIND",
    )
    scheduler: str | None = _work(
        "Address of a Dask scheduler, such as tcp://10.0.0.1:8786. Files that its workers cannot "
        "read are sent to them.",
        "ADDRESS",
    )
    work_dir: str | None = _work(
        "Folder for Dask workers, which all of them can read, or one in a bucket. Text files are "
        "converted and stored there once, so that the workers read them themselves and an "
        "interrupted run resumes where it stopped.",
        "DIR",
    )
    out: str | None = files(
        "Folder to write, here or in a bucket (s3://bucket/folder). Default: a folder here, "
        "named after the input.",
        "DIR",
    )
    force: bool = files("Overwrite the results of an earlier run.", default=False)
    each: bool = files(
        "Screen each table by itself: one report for each, and an index that lists what changed "
        "since the previous run.",
        default=False,
    )
    to_send: bool = files(
        "Also write a folder to-send that can be shared: a page and figures, without whole rows, "
        "tables or the model.",
        default=False,
    )
    format: TableFormat = files(
        "Format of the scored table: csv, parquet, or same as the input. With same, the lists "
        "also use the delimiter and decimal sign of the input.",
        "KIND",
        default="csv",
    )
    keep_hidden: bool = files("Write hidden columns into the scored table.", default=False)
    flagged: FlaggedFormat = files(
        "Format of the list of flagged rows: csv, or xlsx for a workbook that colours the odd "
        "cells and lists them on a second sheet.",
        "KIND",
        default="csv",
    )
    write_to: str | None = files(
        "Write key, score and reason of each row to a new table of the database that TABLE is in.",
        "NAME",
    )
    junit: str | None = files(
        "Write the rules as test cases to a JUnit XML file for continuous integration. A broken "
        "rule is a failure that lists the lines that break it.",
        "FILE",
    )
    fail_on_flagged: bool = files(
        "End with exit code 6 if a row is flagged; the results are the same.", default=False
    )
    delimiter: str | None = files("Column separator. Default: detected.", "C")
    encoding: str | None = files("Text encoding. Default: detected.", "NAME")
    sheet: str | None = files("Name or number of the workbook's sheet. Default: the first.", "NAME")
    skip_rows: int = files(
        "Lines to skip before the header. Title lines are detected without it.",
        "N",
        default=0,
        within=(0, MOST_SKIPPED),
    )
    bad_lines: BadLinesName = files(
        "What to do with lines that cannot be parsed: refuse the file, or skip and list them.",
        "refuse|skip",
        default="refuse",
    )
    layout: LayoutName | None = files(
        "auto: leave out titles, units, repeated headers, totals and footers of a text file or "
        "sheet, and report them. off: read everything below the first row as data. Default: that "
        "of the model, or auto.",
        "auto|off",
    )
    as_of: str | None = files(
        "Version of a Delta table: a number, or the last version at a time such as "
        "2026-01-31T12:00 (UTC). Default: the latest.",
        "VERSION|TIME",
    )
    query: str | None = files(
        "SELECT whose rows are read, if TABLE is a database. It runs in a read-only transaction.",
        "SQL",
    )
    table_name: str | None = files("Table of the database to read: name or schema.name.", "NAME")
    timeout: float | None = files(
        "Time limit in seconds for reading from a database. Default: none.", "S", within=(1e-3, 1e9)
    )
    dry_run: bool = general("Print how each column would be used, and stop.", default=False)

    def given(self, kind: Any) -> dict[str, Any]:
        """Return the options of a class `kind` that are not None, with lists as tuples."""
        values = {each.name: getattr(self, each.name, None) for each in fields(kind)}
        return {
            name: tuple(value) if name in LISTS else value
            for name, value in values.items()
            if value is not None
        }


# Options that take any number of columns.
LISTS = ("exclude", "categorical", "numeric", "by", "hide")
_OF_COMMANDS = "out force each to_send write_to junit fail_on_flagged json quiet dry_run config"
KEYWORDS = {  # flag -> keyword of the Python functions
    flag_of(name): f"{name}="
    for name in ("reference", *(each.name for each in fields(NoveltyOptions)))
    if name not in _OF_COMMANDS.split()
}


_FLAG = re.compile(r"(?<![^ (])--[\w-]+(?=[).,;:]*(?: |\Z))")  # a word that looks like an option
# A quotation; quotes inside words do not end it.
_QUOTED = re.compile(r"""((?<![^\s(\[])".*?"(?=[\s.,;:?!)\]]|$))""", re.DOTALL)


def in_keywords(sentence: str, keywords: Mapping[str, str] = KEYWORDS) -> str:
    """Replace flags outside quotations by keywords: ``--landmarks`` by ``n_landmarks=``.

    Messages, also those in model files, name options by flags, which Python users do not know.
    """
    parts = _QUOTED.split(sentence)
    parts[::2] = [_FLAG.sub(lambda flag: keywords.get(flag[0], flag[0]), p) for p in parts[::2]]
    return "".join(parts)


def check_limits(values: object, kind: Any = NoveltyOptions) -> None:
    """Raise OptionError for values outside the limits of an options class."""
    for option in fields(kind):
        name, limits = option.name, option.metadata
        value = getattr(values, name, None)
        if value is None:
            continue
        if limits["within"]:
            _require_within(name, value, *limits["within"])
        elif limits["between"]:
            low, high = limits["between"]
            if not is_number(value):
                raise OptionError(name, f"must be a number, got {shown(value)}")
            if not low < value < high:
                raise OptionError(name, f"must be above {low:g} and below {high:g}, got {value:g}")
        elif value not in (choices := _choices(kind).get(name, (value,))):
            text = one_line(str(value))
            meant = suggest(text, choices)
            raise OptionError(name, f"must be {', '.join(choices)}, got {text!r}.{meant}")
    if kind is NoveltyOptions and getattr(values, "method", None) is not None:
        _check_method(values)


def _check_method(values: Any) -> None:
    for name, method in (("ridge", "blocks"), ("sigma", "hoffmann"), ("components", "hoffmann")):
        if getattr(values, name) is not None and values.method != method:
            raise OptionError(
                name, f"applies to --method {method} only: choose it, or leave {flag_of(name)} out"
            )
    q = values.components
    if q is not None and q >= 1 and not is_number(q, whole=True):
        raise OptionError(
            "components", f"must be a whole number, or a share of the variance below 1, got {q!r}"
        )
    if values.method == "hoffmann" and values.calibration == "leave-one-out":
        raise OptionError(
            "calibration", "leave-one-out applies to --method blocks only: leave --calibration out"
        )


@cache
def _choices(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the allowed values of each option whose type is a Literal."""
    hints = get_type_hints(kind).items()
    kinds = {name: (hint, *get_args(hint)) for name, hint in hints}
    return {n: get_args(k) for n, of in kinds.items() for k in of if get_origin(k) is Literal}


def is_number(
    value: object, low: float = -math.inf, high: float = math.inf, *, whole: bool = False
) -> bool:
    """Whether a value is a finite number within two limits; a boolean is not a number.

    >>> is_number(2, 1, 3), is_number(True), is_number(10**400), is_number(2.0, whole=True)
    (True, False, False, False)
    """
    number: Any = value
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return False
    try:
        return math.isfinite(number) and low <= number <= high
    except OverflowError:  # an integer beyond the range of floats
        return False


def check_jobs(name: str, value: object) -> None:
    """Raise ParameterError for an invalid number of workers, in joblib's convention (-1: all)."""
    if value is not None and not (is_number(value, -MOST_JOBS, MOST_JOBS, whole=True) and value):
        raise ParameterError(
            name,
            f"is {shown(value, whole=True)}; give a whole number of workers up to {MOST_JOBS:,}, "
            "-1 for all processors",
        )


def _require_within(name: str, value: Any, low: float, high: float) -> None:
    """Raise OptionError for a number out of range, or for a fraction if `low` is an integer."""
    whole = isinstance(low, int)
    if is_number(value, low, high, whole=whole):
        return
    what = "a whole number" if whole else "a number"
    kind: Any = Integral if whole else Real
    if isinstance(value, kind):
        if value < low:
            what = "above 0" if value <= 0 < low < 1 else f"at least {low:g}"
        elif value > high:
            what = f"at most {high:,}" if whole else f"at most {high:g}"
    raise OptionError(name, f"must be {what}, got {shown(value, whole=whole)}")
