"""Random access to the bytes of a large file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from kpca_apps.errors import InputError


@dataclass(frozen=True)
class LargeFile:
    """A file that can be sliced like bytes; raises InputError if the file has changed."""

    path: Path
    label: str
    stat: os.stat_result

    def __len__(self) -> int:
        return self.stat.st_size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(len(self))
        with self.path.open("rb") as file:
            now = os.fstat(file.fileno())
            if (now.st_size, now.st_mtime_ns) != (self.stat.st_size, self.stat.st_mtime_ns):
                raise InputError(f"{self.label}: has changed while it was read; try again.")
            file.seek(start)
            return file.read(max(0, stop - start))


Content: TypeAlias = bytes | LargeFile


def openable(data: Content) -> BytesIO | str:
    """Return what a library's open function accepts: a buffer, or the path of a large file."""
    return BytesIO(data) if isinstance(data, bytes) else str(data.path)
