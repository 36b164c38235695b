"""A file that is read more than once, and must be the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kpca_apps.errors import InputError
from kpca_apps.files.limits import require_memory
from kpca_apps.files.raw import CHUNK

__all__ = ["KnownFile"]


@dataclass(frozen=True)
class KnownFile:
    """A file, as it was when it was first looked at.

    Attributes
    ----------
    path : str
        Absolute path.
    label : str
        The file as the user named it, fit for a one-line message.
    size : int
        Bytes.
    modified : int
        Time of the last change, nanoseconds.
    """

    path: str
    label: str
    size: int
    modified: int

    @classmethod
    def at(cls, path: Path, label: str) -> KnownFile:
        """Take note of a file as it is now."""
        found = path.stat()
        return cls(str(path.absolute()), label, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is no longer what it was.

        Raises
        ------
        InputError
            If it was changed, moved or removed.
        """
        try:
            found = Path(self.path).stat()
        except OSError as error:
            raise self.unreadable(error) from None
        if (found.st_size, found.st_mtime_ns) != (self.size, self.modified):
            raise InputError(
                f"{self.label}: the file was changed while it was being read; run again once it is "
                "complete."
            )

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the first to the last."""
        self.check()
        try:
            with Path(self.path).open("rb") as file:
                # No further than it was long: something may write to it faster than this reads.
                left = self.size
                while left and (chunk := file.read(min(CHUNK, left))):
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise self.unreadable(error) from None
        self.check()

    def read(self, start: int, stop: int) -> bytes:
        """Return some of the bytes.

        Raises
        ------
        InputError
            If the file is no longer what it was.
        MemoryLimitError
            If they would not fit into memory.
        """
        self.check()
        require_memory(self.label, stop - start)
        try:
            with Path(self.path).open("rb") as file:
                file.seek(start)
                data = file.read(stop - start)
        except OSError as error:
            raise self.unreadable(error) from None
        self.check()
        return data

    def unreadable(self, error: OSError) -> InputError:
        """Return the error for a file the system cannot read."""
        return InputError(
            f"{self.label}: cannot be read ({error.strerror or error}); it must stay where it is "
            "until the work is done, for workers elsewhere too."
        )
