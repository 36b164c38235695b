"""The data of the papers: where each file lies in the data folder, checked by its SHA-256.

``kpca papers fetch`` fills the folder: no file states a licence, so that none is passed on.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.papers.tables import read_table
from kpca_apps.system.arrays import Matrix

MOST_BYTES = 20_000_000  # no file of the papers is longer

Labels = NDArray[np.intp]


class MissingDataError(InputError):
    """A file an experiment needs is not in the data folder, or is another file of that name."""


@dataclass(frozen=True)
class PaperFile:
    """A file of the data folder, by its path there, and a public copy at a commit that stays."""

    path: str
    sha256: str
    address: str


FILES: dict[str, tuple[PaperFile, ...]] = {
    data: tuple(PaperFile(row["path"], row["sha256"], row["address"]) for row in rows)
    for data, rows in groupby(read_table("files"), lambda row: row["data"])
}


def read_paper_file(folder: Path, file: PaperFile) -> bytes:
    """Read a file of the data folder, if it is the one it should be; else name what to do.

    A pipe, a device or a file longer than `MOST_BYTES` is not read at all.
    """
    path = folder / file.path
    other = ""
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            other = "it is no regular file"
        elif facts.st_size > MOST_BYTES:
            other = f"it is longer than {MOST_BYTES / 1e6:.0f} MB"
        elif hashlib.sha256(content := path.read_bytes()).hexdigest() != file.sha256:
            other = "its SHA-256 differs"
    except FileNotFoundError as error:
        if not path.is_symlink():
            raise MissingDataError(
                f"{file.path}: not in the data folder; kpca papers fetch gets it."
            ) from error
        other = "it is a link that leads nowhere"
    except OSError as error:
        raise MissingDataError(f"{file.path}: cannot be read ({error.strerror}).") from error
    if other:
        raise MissingDataError(
            f"{file.path}: not the file the figures were made with ({other}); remove it, and "
            "kpca papers fetch gets the right one."
        )
    return content


@dataclass(frozen=True)
class PaperData:
    """The data folder, as given by ``--data``, or none."""

    folder: Path | None

    def require(self, name: str) -> None:
        """Check that the files of a data set are there and are the right ones."""
        for file in FILES[name]:
            self._bytes(file)

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of the files of data sets, by path."""
        return {file.path: file.sha256 for name in names for file in FILES[name]}

    def _bytes(self, file: PaperFile) -> bytes:
        if self.folder is None:
            raise MissingDataError(
                f"needs {file.path}: get the data with kpca papers fetch FOLDER, then name the "
                "folder with --data."
            )
        return read_paper_file(self.folder, file)

    def usps(self) -> tuple[Matrix, Labels, Matrix, Labels]:
        """Return training (7291, 256) and test (2007, 256) pixels in [-1, 1], with labels."""
        train, test = (
            np.loadtxt(io.BytesIO(gzip.decompress(self._bytes(file)))) for file in FILES["usps"]
        )
        numbers = train[:, 0].astype(np.intp), test[:, 0].astype(np.intp)
        return train[:, 1:], numbers[0], test[:, 1:], numbers[1]

    def segmentation(self) -> tuple[Matrix, NDArray[np.str_], Matrix, NDArray[np.str_]]:
        """Return attributes (n, 19) and class names of ``.data`` (210) and ``.test`` (2,100)."""
        parts: list[NDArray[np.generic]] = []
        for file in FILES["segmentation"]:
            lines = self._bytes(file).decode("ascii").splitlines()
            cells = [line.split(",") for line in lines if line.count(",") == 19]
            parts.append(np.array([row[1:] for row in cells], dtype=np.float64))
            parts.append(np.array([row[0] for row in cells]))
        return tuple(parts)  # type: ignore[return-value]

    def hoffmann(self, name: str) -> Matrix:
        """Return one of Hoffmann's sets of the plane, shape (n, 2).

        The last 50 rows of "square-noise" and the last 200 of "sine-noise" are noise.
        """
        file = next(file for file in FILES["hoffmann"] if file.path == f"hoffmann/{name}.csv")
        return np.loadtxt(io.BytesIO(self._bytes(file)))

    def cancer(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the 683 complete rows, nine attributes from 1 to 10, and which are malignant."""
        table = np.loadtxt(io.BytesIO(self._bytes(FILES["cancer"][0])), delimiter=",")
        return table[:, :9], table[:, 9] == 1.0
