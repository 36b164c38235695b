"""Screen tables from Python: data frames in, results out."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeGuard, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kpca_apps.errors import ConfigError, KpcaError, OptionError, RefusedError, about
from kpca_apps.names import cut_apart, name_key, one_line, shown, suggest
from kpca_apps.novelty.accepted import Marks, marks_of, read_marks
from kpca_apps.novelty.columns.parts import AnyTable, Execution, take_rows
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.redact import masked
from kpca_apps.novelty.relations.results import RuleCheck, Rules
from kpca_apps.novelty.relations.rule import HeldRules
from kpca_apps.novelty.relations.rule_file import read_rules
from kpca_apps.novelty.relations.table_rules import check_table_rules, find_table_rules
from kpca_apps.novelty.result import RankedRow, Reason, ScreeningResult
from kpca_apps.novelty.run import inherit_options, score, screen
from kpca_apps.novelty.screening.fit import fit_table
from kpca_apps.novelty.screening.model import RULES, NoveltyModel, ScreeningOptions
from kpca_apps.novelty.written_tables import (
    found_columns,
    odd_cell_columns,
    scores_of_rows,
    write_tables,
)
from kpca_apps.options import (
    LISTS,
    OF_FILES,
    READING,
    CalibrationName,
    FlaggedFormat,
    LearnFrom,
    MethodName,
    NoveltyOptions,
    TableFormat,
    WorkersName,
    check_limits,
    in_keywords,
)
from kpca_apps.report.novelty.text import headline, is_missing, row_name
from kpca_apps.system.files.output import atomic_write
from kpca_apps.system.finished import work_folder
from kpca_apps.system.limits import require_table
from kpca_apps.system.workers import on_dask, workers_for
from kpca_apps.tables.databases.address import is_database
from kpca_apps.tables.databases.writing import write_rows
from kpca_apps.tables.frames import (
    Frame,
    column_name,
    frame_beside,
    frame_like,
    frame_rows,
    frame_without,
    read_frame,
)
from kpca_apps.tables.input_file import Reading
from kpca_apps.tables.opening import open_table, read_table
from kpca_apps.tables.read.uri import scheme_of, with_file
from kpca_apps.tables.table import PartedTable, Table
from kpca_apps.tables.write import Added

# `Any` stands for frames of other libraries, which are recognised by their methods.
TableLike = Table | PartedTable | str | Path | pl.DataFrame | pl.LazyFrame | Mapping[str, Any] | Any
Columns = str | Sequence[Hashable]

# Options that the functions below take as parameters of the same name and pass on unchanged.
OPTION_NAMES = {one.name for one in fields(NoveltyOptions)} - {
    *("accept", "marks", "workers", "scheduler", "work_dir")
}
REASONS = {
    **dict.fromkeys(("rank", "row", "line"), pl.Int64),
    **dict.fromkeys(("id", "column", "seen", "expected"), pl.String),
    "share": pl.Float64,
    **dict.fromkeys(("together", "hints"), pl.String),
}
# Maximum number of rows that `repr` shows, and of characters in a row.
SHOWN, WIDTH = 4, 79


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Screening(ScreeningResult):
    """The result of a screening, with the screened rows and the fitted model.

    The attributes hold all that `repr` and a notebook show. `to_frame` and `flagged` return data
    frames, and `save_report` writes a page.

    Attributes
    ----------
    rows : RowScores
        `scores`, `ranks`, `is_flagged`, and `p_values` (with a reference) or `rarities` (without):
        arrays (n,) in input order.
    threshold : ThresholdInfo
        The score above which rows are flagged, and the rule that set it.
    ranked : tuple of RankedRow
        The highest-ranked rows with their reasons, in order of rank.
    findings : Findings
        `odd_cells`, `rules` between columns, `patterns`, `duplicates` and `moved` columns.
    columns : tuple of ColumnProfile
        How each column was interpreted, and why.
    lists : RowLists
        Flagged, accepted and marked rows.
    run : ScreeningRun
        `warnings` to read before trusting the list, `settings`, `versions` and `command`.
    model : NoveltyModel
        For `score_table` and `save_model`.

    Examples
    --------
    >>> from kpca_apps import screen_table
    >>> sizes = [10.0 + i % 7 for i in range(40)]
    >>> result = screen_table({"height": [*sizes, 10.0], "weight": [*sizes, 16.0]})
    >>> result.n_flagged, result.ranked[0].row
    (1, 41)
    >>> result.flagged().select("height", "weight", "rank").rows()
    [(10.0, 16.0, 1)]
    """

    model: NoveltyModel
    _table: AnyTable
    _frame: Any  # the data frame that was passed; None for a path or a table

    def to_frame(self, *, keep_hidden: bool = False) -> Any:
        """Return all rows in input order, with the findings on each row as further columns.

        Parameters
        ----------
        keep_hidden : bool
            Whether to keep the cells of hidden columns. By default these cells are empty, and a
            hidden index is replaced by row numbers.

        Returns
        -------
        DataFrame
            A pandas frame with its index, or a pyarrow table, if the input was one, else a polars
            frame. Cells of a text file are text, unchanged.

        Raises
        ------
        MemoryLimitError
            If a table that is read in parts does not fit into memory.
        """
        return self._beside(None, keep_hidden)

    def flagged(self, *, keep_hidden: bool = False) -> Any:
        """Return the rows that are flagged or have an odd cell, by rank.

        Parameters
        ----------
        keep_hidden : bool
            As for `to_frame`.

        Returns
        -------
        DataFrame
            As from `to_frame`, with the columns row, line and hint; empty if no row is listed.
        """
        places = np.flatnonzero(self.rows.ranks <= self.n_listed)
        places = places[np.argsort(self.rows.ranks[places])]
        known = {one.row - 1: one for one in self.lists.flagged}
        listed = [known.get(place) for place in places.tolist()]
        lines = [None if one is None else one.line for one in listed]
        hints = [None if one is None else one.hint or None for one in listed]
        added = {
            "row": places + 1,
            "line": pl.Series(lines, dtype=pl.Int64) if any(lines) else None,
            "hint": pl.Series(hints, dtype=pl.String),
        }
        return self._beside(places, keep_hidden, added)

    def odd_cells_frame(self) -> Any:
        """Return a frame with one row for each cell that is odd by itself, clearest first.

        Returns
        -------
        DataFrame
            A frame of the same library as from `to_frame`, with the columns file, line, row, id,
            column, reads, suggestion and why; empty if no cell is odd.

        Examples
        --------
        >>> ages, sizes = [str(20 + i % 50) for i in range(200)], [170 + i % 9 for i in range(201)]
        >>> result = screen_table({"age": [*ages, "3O"], "height": sizes})
        >>> result.odd_cells_frame().select("row", "column", "reads", "suggestion").rows()
        [(201, 'age', '3O', '30')]
        """
        return frame_like(self._frame, odd_cell_columns(self._table, self))

    def reasons_frame(self) -> Any:
        """Return a frame with a row for each reason of the explained rows, in order of rank.

        Returns
        -------
        DataFrame
            A frame of the same library as from `to_frame`, with the columns rank, row, line, id,
            column, seen, expected, share, together and hints. `together` lists, joined by ", ", the
            columns that are odd only in combination with this column. `hints` are about the whole
            row. A row without reasons is listed once, with its hints.

        Examples
        --------
        >>> sizes = [10.0 + i % 7 for i in range(40)]
        >>> result = screen_table({"height": [*sizes, 10.0], "weight": [*sizes, 16.0]})
        >>> result.reasons_frame()["rank"][0]
        1
        """
        rows = [
            (row.rank, row.row, row.line, row.id, *_reason_cells(reason), " ".join(row.hints))
            for row in self.ranked
            if row.explained
            for reason in (row.reasons or (None,))
        ]
        found = pl.DataFrame(rows, schema=REASONS, orient="row")
        joined = pl.col("together", "hints")
        return frame_like(self._frame, found.with_columns(joined.replace("", None)).to_dict())

    def _beside(
        self,
        places: NDArray[np.int64] | None,
        keep_hidden: bool,
        more: Added = MappingProxyType({}),
    ) -> Any:
        """Add findings to the rows at some positions, or to all rows, and clear hidden columns."""
        table, rows = self._table, self._frame
        some = slice(None) if places is None else places
        if rows is None and isinstance(table, Table):
            rows = table.frame
        elif rows is None and places is not None:
            rows, places = take_rows(table, places, Execution()).frame, None
        elif isinstance(table, PartedTable) and rows is None:
            with about(table.source.name):
                require_table(table.n_rows, len(table.columns))
            rows = pl.concat([part.read().frame for part in table.parts])
        if not keep_hidden:
            rows = frame_without(rows, table.columns, self.hidden_columns)
        found = found_columns(self).items()
        return frame_beside(
            rows if places is None else frame_rows(rows, places),
            {name: None if of is None else of[some] for name, of in found} | dict(more),
        )

    def save_tables(
        self,
        folder: str | Path,
        *,
        format: TableFormat = "csv",
        flagged: FlaggedFormat = "csv",
        keep_hidden: bool = False,
    ) -> tuple[str, ...]:
        """Write the scored table, the flagged rows and the odd cells, as the screen command does.

        Parameters
        ----------
        folder : str or Path
            Folder for the files, created if it does not exist. Existing files are replaced.
        format : {"csv", "parquet", "same"}
            Format of the scored table. With ``"same"``, it is Parquet if the input is, and all
            three files have the delimiter and decimal sign of an input that is a text file.
        flagged : {"csv", "xlsx"}
            Format of the list of flagged rows; a workbook also has a sheet of odd cells.
        keep_hidden : bool
            As for `to_frame`; applies to the scored table.

        Returns
        -------
        tuple of str
            Sentences on necessary changes, such as renamed columns.

        Raises
        ------
        ConfigError
            If a format is unknown; then nothing is written.
        """
        with _in_python():
            check_limits(SimpleNamespace(format=format, flagged=flagged))
        path, run = Path(folder), replace(self.run, flagged_file=f"flagged.{flagged}")
        result = replace(self, run=run)
        path.mkdir(parents=True, exist_ok=True)
        plan = self.model.encoder.plan
        return write_tables(path, self._table, result, plan, format=format, keep_hidden=keep_hidden)

    def save_scores(self, uri: str, table_name: str, *, force: bool = False) -> None:
        """Write the score and reasons of each row into a new table of a database.

        Parameters
        ----------
        uri : str
            The database: ``"postgresql://ada@host/shop"``, ``"sqlite:///shop.db"`` or
            ``"duckdb:///shop.duckdb"``.
        table_name : str
            Name of the table, or ``schema.name``. The table gets the number of each row, its
            primary key, the column that names the rows, and the columns that `to_frame` adds.
        force : bool
            Whether to replace an existing table of scores.

        Raises
        ------
        InputError
            If the database cannot be reached or written to; then nothing is written.
        RefusedError
            If the table already exists.

        Examples
        --------
        >>> import sqlite3, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with sqlite3.connect(f"{folder}/shop.db") as shop:
        ...         _ = shop.execute("CREATE TABLE parts (id INTEGER PRIMARY KEY, size REAL)")
        ...         sizes = [(10.0 + i % 7,) for i in range(40)] + [(99.0,)]
        ...         _ = shop.executemany("INSERT INTO parts (size) VALUES (?)", sizes)
        ...     shop.close()
        ...     uri = f"sqlite:///{folder}/shop.db"
        ...     screen_table(uri, table_name="parts").save_scores(uri, "scores")
        ...     read_table(uri, query="SELECT id FROM scores WHERE flagged").frame.rows()
        [(41,)]
        """
        with _in_python():
            write_rows(uri, table_name, scores_of_rows(self._table, self), force=force)

    def save_report(self, path: str | Path) -> None:
        """Write the report: one self-contained HTML page.

        Parameters
        ----------
        path : str or Path
            A file whose name ends in ``.html``; replaced if it exists.

        Raises
        ------
        ConfigError
            If the path has another suffix.
        InputError
            If the file cannot be written.
        """
        if Path(path).suffix.lower() not in (".html", ".htm"):
            name = one_line(str(path), 200)
            raise ConfigError(f'{name}: a report is a page; end its name with ".html"')
        with atomic_write(path) as file:
            file.write(self.to_html().encode("utf-8"))

    def to_html(self) -> str:
        """Return the report that `save_report` writes, as text.

        Returns
        -------
        str
            The page, as HTML.
        """
        from kpca_apps.report.novelty.page import render_screening

        return render_screening(self)

    def __repr__(self) -> str:
        rows = self.oddest_of_each_kind[:SHOWN]
        return "\n".join(
            one_line(text, WIDTH if number else 2 * WIDTH)
            for number, text in enumerate(["".join(headline(self)), *map(_line, rows)])
        )

    def _repr_html_(self) -> str:
        from kpca_apps.report.novelty.page import render_in_notebook

        return render_in_notebook(self)


def _reason_cells(reason: Reason | None) -> tuple[Any, ...]:
    if reason is None:
        return (None,) * 5
    together = ", ".join(reason.together)
    return reason.column, reason.seen, reason.expected, reason.share, together


def _line(row: RankedRow) -> str:
    place = f"{row.rank}. {''.join(row_name(row))}"
    if not row.reasons:
        return place
    reason = row.reasons[0]
    seen, expected = (
        "missing" if is_missing(text) else text
        for text in cut_apart(reason.seen, reason.expected, 20)
    )
    return f"{place}: {one_line(reason.column, 24)} {seen}, expected {expected}"


def screen_table(
    table: TableLike,
    *,
    reference: TableLike | None = None,
    accept: TableLike | None = None,
    marks: TableLike | None = None,
    share: float | None = None,
    count: int | None = None,
    alpha: float | None = None,
    fdr: float | None = None,
    id: Hashable | None = None,
    label: Hashable | None = None,
    positive: str | None = None,
    exclude: Columns = (),
    categorical: Columns = (),
    numeric: Columns = (),
    by: Columns = (),
    hide: Columns = (),
    dayfirst: bool | None = None,
    explain: int = 100,
    method: MethodName = "blocks",
    sigma: float | None = None,
    components: int | float | None = None,
    ridge: float | None = None,
    n_landmarks: int | None = None,
    calibration: CalibrationName = "auto",
    learn_from: LearnFrom = "sample",
    seed: int = 0,
    jobs: int | None = None,
    workers: WorkersName | None = None,
    scheduler: str | Any | None = None,
    work_dir: str | Path | None = None,
    execution: Execution | None = None,
    **reading: Unpack[Reading],
) -> Screening:
    """Screen a table for outliers.

    Parameters
    ----------
    table : DataFrame, dict, array, str, Path, list of paths, Table or PartedTable
        The table, with at least 3 rows; more than 100,000 rows are processed in parts. In memory: a
        frame of pandas, polars (also lazy), pyarrow or another library with Arrow's stream
        interface; a dict of columns; a structured array, or an array (rows, columns). On disk: the
        path of a file or of a folder of files, a pattern, or a list of paths. In a database: a URI
        such as ``"sqlite:///shop.db"``, with `query` or `table_name`. Or what `open_table` returns.
    reference : as `table`, optional
        Rows known to be normal, from which the model is learned. By default, the model is learned
        from the table itself, including its outliers.
    accept : DataFrame, dict, str, Path or Table, optional
        Rows judged to be fine, for example some of `flagged`. Rows of the table that equal an
        accepted row in all shared columns are learned as normal (with a `reference`, as part of it)
        and not flagged. A missing cell matches a missing value.
    marks : str, Path, DataFrame or dict, optional
        Marks that a user set in the report of an earlier run: the saved page, or the list that the
        page wrote. Rows marked as fine are learned as normal. Rows marked as fine or known are not
        flagged; rows marked as wrong are flagged and ranked first.
    share : float, optional
        Share of the rows to flag, in (0, 1). At most one of `share`, `count`, `alpha` and `fdr` may
        be given; with none and no reference, the share is .01.
    count : int, optional
        Number of rows to flag.
    alpha : float, optional
        False-alarm rate on rows like the reference, in (0, 1). Needs a reference; by default .05.
    fdr : float, optional
        Expected share of false discoveries among flagged rows, in (0, 1); needs a reference.
    id : str, optional
        Column that names the rows in the results. By default, the index of a pandas frame, unless
        the index just counts the rows, or else a column of identifiers that differ in every row.
    label : str, optional
        Column of known labels, which the model does not see; used to evaluate the model.
    positive : str, optional
        Label that means outlier.
    exclude, categorical, numeric : str or sequence of str
        Columns to leave out of the model (`hide` also hides their values), to treat as categories,
        and to treat as numbers.
    by : str or sequence of str
        Columns whose values divide the rows into groups. A group of 50 rows or more gets a separate
        model; smaller groups are judged by the model of the whole table.
    hide : str or sequence of str
        Columns that the model uses, but whose values are not in the result. Only the model, and on
        request `to_frame`, contains these values.
    dayfirst : bool, optional
        Order of day and month in columns whose cells do not decide it: True as ``--dayfirst``,
        False as ``--monthfirst``. By default, the order of dates in other columns.
    explain : int
        Number of highest-ranked rows that get reasons, in addition to flagged rows (up to 500 of
        them); with 0, no row gets reasons.
    method : {"blocks", "hoffmann"}
        How rows are scored. "blocks" combines p-values of the row, of its cells and of the
        relations between cells. "hoffmann" is the row's reconstruction error by Hoffmann (2007),
        with one RBF kernel on standardised columns.
    sigma, components : float, optional
        For method "hoffmann". `sigma` is the width of the kernel exp(-r^2 / (2 sigma^2)), in
        standard deviations of the columns; by default, 2 sigma^2 is the median squared distance of
        two rows. `components` is the number of components, or the share of variance that they
        explain (default 0.8).
    ridge : float, optional
        For method "blocks": ridge of the Tikhonov filter, relative to the total variance.
    n_landmarks : int, optional
        Number of landmarks of the Nystrom approximation.
    calibration : {"auto", "leave-one-out", "split"}
        Scores that set the threshold: leave-one-out, or of a held-out part; needs a reference.
    learn_from : {"sample", "all"}
        Whether to learn a table of more than 100,000 rows from a random sample of 100,000 rows or
        from all rows. All rows are scored.
    seed : int
        Seed of all random draws.
    jobs : int, optional
        Number of threads, processes or Dask workers; does not change any result.
    workers : {"threads", "processes", "dask"}, optional
        Kind of workers for a table that is read in parts; ``"dask"`` starts a local cluster.
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler, or a Dask client, which is not closed. Files that its workers
        cannot read are sent to them.
    work_dir : str or Path, optional
        Folder that all Dask workers see, or the address of a folder in a store. Text is converted
        into this folder once, so that workers can read it. If a call is killed, the next call
        resumes with the finished parts.
    execution : Execution, optional
        In place of `workers`, `scheduler` and `work_dir`: open workers, and a progress callback.
    **reading
        Options of `read_table`, such as `delimiter`, for a table given by a path or URI. The URI of
        a `reference` in a database names its table after a ``#``.

    Returns
    -------
    Screening
        The result, shown as a summary in a notebook. `to_frame` returns all rows with the findings,
        `flagged` the flagged rows; `save_report` writes the report; `model` scores further tables.

    Raises
    ------
    ConfigError
        If options contradict each other or the table, or `alpha` or `fdr` lacks a reference.
    InputError
        If a table cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> sizes = [10.0 + i % 7 for i in range(40)]
    >>> frame = pl.DataFrame({"height": [*sizes, 10.0], "weight": [*sizes, 16.0]})
    >>> result = screen_table(frame, share=0.02)
    >>> result.ranked[0].row, result.n_flagged
    (41, 1)
    """
    keywords = {name: value for name, value in locals().items() if name in OPTION_NAMES} | reading
    with _in_python(), _working(execution, workers, jobs, scheduler, work_dir) as work:
        given = _reading(screen_table, reading, table, reference)
        opened = _opened(table, id, given)
        clean = None
        if reference is not None:
            # Options that choose rows of a database apply to the table, but not to the reference.
            kept = (*OF_FILES, *["timeout"] * is_database(reference))
            of_reference = {name: value for name, value in given.items() if name in kept}
            clean = _opened(reference, opened.id, of_reference, name="reference", by_index=False)
        judged = _reviewed(accept, marks, opened.id is not None)
        categories = {*opened.categories, *(clean.categories if clean else ())}
        tables = {"table": table, "reference": reference, "accept": accept, "marks": marks}
        options = _options(keywords, opened.id, categories)
        result, model = screen(
            opened.table,
            reference=clean.table if clean else None,
            accept=judged,
            options=options,
            execution=work,
        )
        call = _call(screen_table, tables, masked(keywords, result))
    return _screening(result, model, opened, call)


def fit_model(
    table: TableLike,
    *,
    clean: bool = True,
    share: float | None = None,
    count: int | None = None,
    alpha: float | None = None,
    fdr: float | None = None,
    id: Hashable | None = None,
    label: Hashable | None = None,
    exclude: Columns = (),
    categorical: Columns = (),
    numeric: Columns = (),
    by: Columns = (),
    hide: Columns = (),
    dayfirst: bool | None = None,
    explain: int = 100,
    method: MethodName = "blocks",
    sigma: float | None = None,
    components: int | float | None = None,
    ridge: float | None = None,
    n_landmarks: int | None = None,
    calibration: CalibrationName = "auto",
    learn_from: LearnFrom = "sample",
    seed: int = 0,
    jobs: int | None = None,
    workers: WorkersName | None = None,
    scheduler: str | Any | None = None,
    work_dir: str | Path | None = None,
    execution: Execution | None = None,
    **reading: Unpack[Reading],
) -> NoveltyModel:
    """Fit a model to a table, to score other tables.

    Parameters
    ----------
    table : DataFrame, dict, array, str, Path, Table or PartedTable
        The table to learn from, as for `screen_table`. With more than 100,000 rows, a random sample
        of 100,000 rows is used, unless `learn_from` is "all".
    clean : bool
        Whether the rows are known to be normal.
    share, count, alpha, fdr : float, optional
        Rule that flags the rows of tables scored later; see `screen_table`.
    id, label, exclude, categorical, numeric, by, hide, dayfirst : optional
        Roles of the columns; see `screen_table`.
    explain, method, sigma, components, ridge, n_landmarks, calibration, learn_from
        See `screen_table`.
    seed, jobs
        See `screen_table`.
    workers, scheduler, work_dir, execution : optional
        Workers for a table that is read in parts; see `screen_table`.
    **reading
        How a file or a database is read; see `read_table`.

    Returns
    -------
    NoveltyModel

    Raises
    ------
    ConfigError
        If the options contradict each other or the table.
    InputError
        If the table has too few rows or no usable column.

    Examples
    --------
    >>> model = fit_model({"height": [10.0 + i % 7 for i in range(40)]}, alpha=0.1)
    >>> score_table(model, {"height": [12.0, 30.0]}).rows.is_flagged
    array([False,  True])
    """
    keywords = {name: value for name, value in locals().items() if name in OPTION_NAMES} | reading
    with _in_python(), _working(execution, workers, jobs, scheduler, work_dir) as work:
        opened = _opened(table, id, _reading(fit_model, reading, table))
        options = _options(keywords, opened.id, opened.categories)
        return fit_table(opened.table, options, clean=clean, execution=work)[0]


def score_table(
    model: NoveltyModel,
    table: TableLike,
    *,
    accept: TableLike | None = None,
    marks: TableLike | None = None,
    share: float | None = None,
    count: int | None = None,
    alpha: float | None = None,
    fdr: float | None = None,
    id: Hashable | None = None,
    label: Hashable | None = None,
    positive: str | None = None,
    explain: int | None = None,
    jobs: int | None = None,
    hide: Columns | None = None,
    workers: WorkersName | None = None,
    scheduler: str | Any | None = None,
    work_dir: str | Path | None = None,
    execution: Execution | None = None,
    **reading: Unpack[Reading],
) -> Screening:
    """Score and flag the rows of a table by a fitted model, each independently of the others.

    Parameters
    ----------
    model : NoveltyModel
        The model, from `fit_model`, `load_model`, or another screening.
    table : DataFrame, dict, array, str, Path, Table or PartedTable
        As for `screen_table`; must have all columns that the model uses, in any order.
    accept : DataFrame, dict, str, Path or Table, optional
        Rows judged to be fine, as for `screen_table`; not flagged. The model does not change.
    marks : str, Path, DataFrame or dict, optional
        Marks set in a report, as for `screen_table`. The model does not change.
    share, count, alpha, fdr : float, optional
        Rule that flags rows, in place of the model's rule; see `screen_table`.
    id, label, positive, explain, jobs : optional
        As for `screen_table`; the defaults are the model's options.
    hide : str or sequence of str, optional
        Columns to hide in addition to the columns that the model hides; see `screen_table`.
    workers, scheduler, work_dir, execution : optional
        Workers for a table that is read in parts; see `screen_table`.
    **reading
        How a file or a database is read; see `read_table`.

    Returns
    -------
    Screening

    Raises
    ------
    ConfigError, InputError
        As `screen_table`; also if a column the model uses is missing.

    Examples
    --------
    >>> model = screen_table({"height": [10.0 + i % 7 for i in range(40)]}).model
    >>> score_table(model, {"height": [12.0, 30.0]}, count=1).rows.is_flagged
    array([False,  True])
    """
    keywords = {name: value for name, value in locals().items() if name in OPTION_NAMES} | reading
    _require_model(model)
    with _in_python(), _working(execution, workers, jobs, scheduler, work_dir) as work:
        if reading.get("layout") is None and _is_path(table):
            reading["layout"] = keywords["layout"] = model.options.layout
        opened = _opened(table, id, _reading(score_table, reading, table))
        # The column that named the training rows takes precedence over an index.
        is_known = id is None and model.options.columns.id in opened.table.columns
        options = inherit_options(
            model,
            opened.table,
            work,
            **{name: keywords[name] for name in (*RULES, "positive", "explain", "jobs")},
            id=None if is_known else opened.id,
            label=None if label is None else column_name(label),
            hide=None if hide is None else _names("hide", hide),
        )
        tables = {"model": model, "table": table, "accept": accept, "marks": marks}
        result = score(
            model,
            opened.table,
            accept=_reviewed(accept, marks, opened.id is not None),
            options=options,
            execution=work,
        )
        call = _call(score_table, tables, masked(keywords, result))
    return _screening(result, model, opened, call)


def find_rules(
    table: TableLike,
    *,
    id: Hashable | None = None,
    exclude: Columns = (),
    categorical: Columns = (),
    numeric: Columns = (),
    hide: Columns = (),
    dayfirst: bool | None = None,
    seed: int = 0,
    execution: Execution | None = None,
    **reading: Unpack[Reading],
) -> Rules:
    """Find rules between the columns of a table that hold in nearly all of its rows.

    Parameters
    ----------
    table : DataFrame, dict, array, str, Path, Table or PartedTable
        The table, as for `screen_table`. With more than 100,000 rows, rules are found in a random
        sample of 100,000 rows, and verified on all rows.
    id : str, optional
        Column that names the rows; see `screen_table`.
    exclude, categorical, numeric : str or sequence of str
        Columns to leave out, to treat as categories, and to treat as numbers.
    hide : str or sequence of str
        Columns whose values are not shown; rules that contain their values are left out.
    dayfirst : bool, optional
        Order of day and month; see `screen_table`.
    seed : int
        Seed of all random draws.
    execution : Execution, optional
        Workers for a table that is read in parts, and progress.
    **reading
        How a file or a database is read; see `read_table`.

    Returns
    -------
    Rules
        The rules. `sentences` describes them, `save` writes them for `check_rules`; `to_sql`,
        `to_pandera` and `to_dqx` export them.

    Raises
    ------
    ConfigError
        If the options contradict each other or the table.
    InputError
        If the table cannot be used.

    Examples
    --------
    >>> net, tax = [100 + i * i % 97 for i in range(200)], [i * i % 31 for i in range(200)]
    >>> gross = [a + b for a, b in zip(net, tax)]
    >>> gross[7] = 1000
    >>> rules = find_rules({"net": net, "tax": tax, "gross": gross})
    >>> rules.sentences
    ('gross = net + tax in 199 of 200 rows',)
    """
    keywords = {name: value for name, value in locals().items() if name in OPTION_NAMES}
    with _in_python():
        check_limits(SimpleNamespace(seed=seed))
        opened = _opened(table, id, _reading(find_rules, reading, table))
        given = {"by": (), "label": None} | keywords
        options = _options(given, opened.id, opened.categories)
        work = execution or Execution()
        found = find_table_rules(opened.table, options.columns, seed=seed, execution=work)
    return Rules(**_fields_of(HeldRules, found))


def check_rules(
    table: TableLike,
    rules: HeldRules | str | Path,
    *,
    id: Hashable | None = None,
    hide: Columns = (),
    execution: Execution | None = None,
    **reading: Unpack[Reading],
) -> RuleCheck:
    """Check rules on a table: which hold in all rows, and which rows break the others.

    Parameters
    ----------
    table : DataFrame, dict, array, str, Path, Table or PartedTable
        The table, as for `screen_table`; must have all columns of the rules, in any order. Cells
        are read in the formats of the table in which the rules were found.
    rules : Rules, str or Path
        The rules from `find_rules`, or the path of a file written by their `save`.
    id : str, optional
        Column that names the rows; by default, the same as for the rules.
    hide : str or sequence of str
        Columns whose values are not shown.
    execution : Execution, optional
        Workers for a table that is read in parts, and progress.
    **reading
        How a file or a database is read; see `read_table`.

    Returns
    -------
    RuleCheck
        The result: `passed`, and `to_frame` for the rows that break a rule.

    Raises
    ------
    ConfigError
        If an option names a column that the table lacks.
    InputError
        If the file of rules or the table cannot be used, or a column of the rules is missing.

    Examples
    --------
    >>> from kpca_apps import find_rules
    >>> low = [i * i % 97 for i in range(200)]
    >>> rules = find_rules({"low": low, "high": [x + i % 3 for i, x in enumerate(low)]})
    >>> check = check_rules({"low": [1, 5], "high": [2, 3]}, rules)
    >>> check.passed
    False
    >>> check.to_frame().select("rule", "row", "cells").rows()
    [('low <= high', 2, 'low 5, high 3')]
    """
    with _in_python():
        if not isinstance(rules, HeldRules | str | Path):
            raise ConfigError(
                "rules= must be what find_rules returned, or the path of a file that it saved"
            )
        known = read_rules(rules) if isinstance(rules, str | Path) else rules
        opened = _opened(table, id, _reading(check_rules, reading, table))
        columns = ColumnOptions(id=opened.id, hide=_names("hide", hide))
        checked, rows = check_table_rules(known, opened.table, columns, execution or Execution())
    return RuleCheck(**_fields_of(HeldRules, checked), rows=rows, _frame=opened.given)


def _fields_of(kind: type[HeldRules] | type[ScreeningResult], found: object) -> dict[str, Any]:
    return {one.name: getattr(found, one.name) for one in fields(kind)}


def _require_model(model: object) -> None:
    if not isinstance(model, NoveltyModel):
        kind = type(model).__name__
        raise ConfigError(f"model= takes a fitted model, such as load_model returns, not {kind}.")


def _opened(
    given: TableLike, id: Hashable | None, reading: Mapping[str, Any], **of_frame: Any
) -> Frame:
    """Open or convert a table; `of_frame` are further keywords for `read_frame`."""
    id = None if id is None else column_name(id)
    if _is_path(given):
        given = open_table(given, **reading)
    if isinstance(given, Table | PartedTable):
        return Frame(None, given, id)
    return read_frame(given, id, **of_frame)


def _reviewed(
    accept: TableLike | None, marks: TableLike | None, by_index: bool
) -> list[Table | Marks]:
    """Read or convert earlier judgements of rows: accepted rows and marks."""
    found: list[Table | Marks] = []
    for name, given in (("accept", accept), ("marks", marks)):
        if isinstance(given, str | Path):
            found.append(read_table(given) if name == "accept" else read_marks(given))
        elif given is not None:
            # Use the index of `given` as row names only if the rows to be scored have names, too.
            table = given
            if not isinstance(given, Table):
                table = read_frame(given, name=name, by_index=by_index, in_memory_rows=inf).table
            assert isinstance(table, Table)
            found.append(table if name == "accept" else marks_of(table, "marks"))
    return found


def _reading(
    function: Callable[..., Any], keywords: Mapping[str, Any], *tables: TableLike
) -> dict[str, Any]:
    """Return the reading options; raise an error if reading options are given but no path."""
    if unknown := [name for name in keywords if name not in READING]:
        near = suggest(unknown[0], [*READING, *(function.__kwdefaults__ or {})])
        raise TypeError(f"{function.__name__} has no keyword argument {unknown[0]!r}.{near}")
    reading = {n: value for n, value in keywords.items() if value != getattr(NoveltyOptions, n)}
    if reading and not any(map(_is_path, tables)):
        raise OptionError(next(iter(reading)), "says how a file is read: give its path")
    return reading


def _is_path(given: TableLike) -> TypeGuard[str | Path | list[str | Path]]:
    several = given if isinstance(given, list) and given else [given]
    return all(isinstance(path, str | Path) for path in several)


def _names(option: str, given: Columns | None) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, Iterable):
        raise OptionError(option, f"takes a name or a list of names, got {shown(given)}")
    return tuple(map(column_name, [given] if isinstance(given, str) else given))


def _options(
    keywords: Mapping[str, Any], id: str | None, categories: Sequence[str] | set[str]
) -> ScreeningOptions:
    """Combine the options; by default, categorical columns of a frame stay categorical."""
    names = {name: _names(name, keywords[name]) for name in LISTS}
    label = None if keywords["label"] is None else column_name(keywords["label"])
    spoken_for = {*names["exclude"], *names["numeric"], *names["categorical"], *names["by"]}
    keys = set(map(name_key, filter(None, {id, label, *spoken_for})))
    names["categorical"] += tuple(sorted(n for n in categories if name_key(n) not in keys))
    return ScreeningOptions.of(NoveltyOptions(**{**keywords, **names, "id": id, "label": label}))


def _call(
    function: Callable[..., Any], tables: Mapping[str, Any], keywords: Mapping[str, Any]
) -> str:
    """Write the call that repeats a result, with frames and models as variable names."""
    words: list[str] = []
    defaults: dict[str, Any] = {name: getattr(NoveltyOptions, name) for name in READING}
    defaults |= function.__kwdefaults__ or {}
    for name, value in {**tables, **keywords}.items():
        if name == "jobs" or value is defaults.get(name, words):
            continue
        if name in tables and _is_path(value):
            names = list(map(_path_name, value if isinstance(value, list) else [value]))
            value = names if isinstance(value, list) else names[0]
        written = repr(value) if isinstance(value, str | int | float | tuple | list) else name
        words.append(f"{name}={written}" if name in defaults else written)
    return f"kpca_apps.{function.__name__}({', '.join(words)})"


def _path_name(path: str | Path) -> str:
    """Return a path without its folder, which may be private."""
    if scheme_of(path) is None:
        return Path(path).name
    return with_file(str(path), lambda file: Path(file).name)


@contextmanager
def _working(
    execution: Execution | None,
    kind: WorkersName | None,
    jobs: int | None,
    scheduler: str | Any | None,
    work_dir: str | Path | None,
) -> Iterator[Execution]:
    """Yield the requested workers, and stop them at the end."""
    if execution is not None:
        if not (kind is scheduler is work_dir is None):
            raise ConfigError(
                "execution= has workers of its own: leave --workers, --scheduler and --work-dir out"
            )
        yield execution
        return
    with (
        work_folder(work_dir, on_dask=on_dask(kind, scheduler)) as finished,
        workers_for(kind, jobs, scheduler) as workers,
    ):
        yield Execution(workers, finished=finished)


_screened_in: list[int] = []  # id of the first process that screened a table


def _refuse_forked() -> None:
    """Raise RefusedError in a forked process, which lacks the threads that polars waits for."""
    if not _screened_in:
        _screened_in.append(os.getpid())
    if _screened_in != [os.getpid()]:
        raise RefusedError(
            "a process forked after tables were screened lacks the threads of polars, which read "
            'tables: start processes by multiprocessing.get_context("spawn"), or by Workers'
        )


@contextmanager
def _in_python() -> Iterator[None]:
    """Name options in errors as keywords, not flags; set numpy's error state as commands do.

    The caller's error state is restored afterwards.
    """
    _refuse_forked()
    try:
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            yield
    except KpcaError as error:
        error.args = (in_keywords(error.args[0]), *error.args[1:])
        raise


def _screening(result: ScreeningResult, model: NoveltyModel, opened: Frame, call: str) -> Screening:
    result = replace(
        result,
        run=replace(
            result.run, command=call, warnings=tuple(map(in_keywords, result.run.warnings))
        ),
        source=replace(result.source, notes=tuple(map(in_keywords, result.source.notes))),
        columns=tuple(replace(one, why=in_keywords(one.why)) for one in result.columns),
    )
    found = _fields_of(ScreeningResult, result)
    return Screening(**found, model=model, _table=opened.table, _frame=opened.given)
