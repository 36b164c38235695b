"""The papers' data files in the data folder, checked by SHA-256.

``kpca papers fetch`` downloads the files; they are not redistributed, as none states a licence.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kpca_apps.errors import InputError
from kpca_apps.papers.tables import read_table
from kpca_apps.system.arrays import Matrix

MOST_BYTES = 20_000_000  # all files of the papers are smaller

Labels = NDArray[np.intp]


class MissingDataError(InputError):
    """A data file of an experiment is missing or wrong."""


@dataclass(frozen=True)
class PaperFile:
    """A file of the data folder, and the address of a permanent public copy."""

    path: str
    sha256: str
    address: str


FILES: dict[str, tuple[PaperFile, ...]] = {
    data: tuple(PaperFile(row["path"], row["sha256"], row["address"]) for row in rows)
    for data, rows in groupby(read_table("files"), lambda row: row["data"])
}


def read_paper_file(folder: Path, file: PaperFile) -> bytes:
    """Return the content of a data file; raise MissingDataError if it is missing or wrong.

    Pipes, devices and files larger than `MOST_BYTES` are not read.
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
    """The data sets of the folder given by ``--data``."""

    folder: Path | None

    def require(self, name: str) -> None:
        """Raise MissingDataError unless the files of a data set are present and correct."""
        for file in FILES[name]:
            self._bytes(file)

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
        """Return attributes (n, 19) and classes of ``.data`` (n = 210) and ``.test`` (2,100)."""
        parts: list[NDArray[np.generic]] = []
        for file in FILES["segmentation"]:
            lines = self._bytes(file).decode("ascii").splitlines()
            cells = [line.split(",") for line in lines if line.count(",") == 19]
            parts.append(np.array([row[1:] for row in cells], dtype=np.float64))
            parts.append(np.array([row[0] for row in cells]))
        return tuple(parts)  # type: ignore[return-value]

    def hoffmann(self, name: str) -> Matrix:
        """Return one of Hoffmann's two-dimensional data sets, shape (n, 2).

        The last 50 rows of "square-noise" and the last 200 of "sine-noise" are noise.
        """
        file = next(file for file in FILES["hoffmann"] if file.path == f"hoffmann/{name}.csv")
        return np.loadtxt(io.BytesIO(self._bytes(file)))

    def cancer(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the 683 complete rows (nine attributes, 1 to 10) and a mask of malignant rows."""
        table = np.loadtxt(io.BytesIO(self._bytes(FILES["cancer"][0])), delimiter=",")
        return table[:, :9], table[:, 9] == 1.0
