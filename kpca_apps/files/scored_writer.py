"""The file of a scored table, put together from the bytes of its parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO

import polars as pl

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.atomic import atomic_write, storage_error
from kpca_apps.files.leftovers import remove_leftovers, unfinished_path
from kpca_apps.files.names import one_line
from kpca_apps.files.tables.parquet import PARQUET_SUFFIXES

__all__ = ["ScoredWriter", "check_scored_path"]

# Rows written together; of the file, whatever parts it was made of.
_GROUP_ROWS = 1 << 16


def check_scored_path(path: str | Path) -> str:
    """Name the format a scored table will be written in, by its suffix.

    Parameters
    ----------
    path : str or Path
        The file to write.

    Returns
    -------
    str
        ``"csv"`` or ``"parquet"``.

    Raises
    ------
    ConfigError
        For any other suffix.

    Examples
    --------
    >>> check_scored_path("scored.parquet")
    'parquet'
    """
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise ConfigError(
        f'{one_line(str(path), 200)}: the scored table is written as ".csv" or ".parquet"; end the '
        "name with one of them."
    )


class ScoredWriter(AbstractContextManager["ScoredWriter"]):
    r"""Append the parts of a scored table in their order; the file appears once all are there.

    Parts of CSV follow each other. Parts of Parquet wait in a hidden folder beside the file, and
    are put together at the end, a few at a time.

    Parameters
    ----------
    path : str or Path
        The file to write, ``.csv`` or ``.parquet``; replaced if it exists.

    Attributes
    ----------
    kind : {"csv", "parquet"}
        What each part must be, as `scored_bytes` makes it.

    Raises
    ------
    ConfigError
        If the suffix is neither.
    InputError
        On entering or leaving, if the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scored.csv")
    ...     with ScoredWriter(path) as writer:
    ...         writer.append(b"x,score\n1,0.5\n")
    ...         writer.append(b"2,0.7\n")
    ...     path.read_bytes()
    b'x,score\n1,0.5\n2,0.7\n'
    """

    def __init__(self, path: str | Path) -> None:
        self.kind = check_scored_path(path)
        self._path = Path(path)
        self._held = ExitStack()
        self._number = 0

    def __enter__(self) -> ScoredWriter:
        """Open a temporary file beside the final one."""
        with ExitStack() as held:
            self._file: IO[bytes] = held.enter_context(atomic_write(self._path))
            if self.kind == "parquet":
                self._folder = held.enter_context(_folder_beside(self._path))
            self._held = held.pop_all()
        return self

    def append(self, data: bytes) -> None:
        """Append the rows of the next part."""
        if self.kind == "csv":
            self._file.write(data)
        else:
            # Numbered so that names sort as parts do.
            (self._folder / f"{self._number:09}.parquet").write_bytes(data)
        self._number += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the file, or remove what was begun."""
        if kind is not None or self.kind == "csv":
            self._held.__exit__(kind, error, trace)
            return
        with self._held:
            self._join()

    def _join(self) -> None:
        parts = sorted(self._folder.iterdir())
        if len(parts) == 1:
            with parts[0].open("rb") as part:
                shutil.copyfileobj(part, self._file)
            return
        scan = pl.scan_parquet(parts, glob=False)
        scan.sink_parquet(self._file, row_group_size=_GROUP_ROWS, maintain_order=True)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Make a hidden folder that is gone at the end."""
    target = path.with_name(f"{path.name}.parts")
    remove_leftovers(target)
    folder = unfinished_path(target)
    try:
        folder.mkdir()
    except OSError as error:
        label = one_line(str(path), 200)
        raise storage_error(error, label) or InputError(
            f"{label}: cannot be written ({error.strerror}); choose another place."
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
