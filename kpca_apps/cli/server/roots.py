"""Folders whose files the server may read and write."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.names import TABLE_SUFFIXES, one_line, suggest
from kpca_apps.novelty.compare.diff import SCORED

MEGABYTE = 1_000_000
MOST_LISTED = 200  # maximum number of files listed for a folder
_RESULT = "result.json"


@dataclass(frozen=True)
class Roots:
    """The served folders, and the largest size of a file to read.

    A relative name is looked up in each folder in turn. No path outside can be reached, be it by
    ``..``, an absolute path, or a link.
    """

    folders: tuple[Path, ...]
    largest: int  # bytes

    @classmethod
    def of(cls, folders: list[Path], largest: int) -> Roots:
        """Return the folders of --root; raise ConfigError for a folder that does not exist."""
        for folder in folders:
            if not folder.is_dir():
                what = "is not a folder; name one" if folder.exists() else "does not exist; make it"
                raise ConfigError(f"--root {one_line(str(folder), 200)} {what}")
        return cls(tuple(folder.resolve() for folder in folders), largest)

    def file(self, name: str) -> Path:
        """Return the path of an existing file of the allowed size."""
        path = self.existing(name)
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{_quoted(name)}: is not a file; name one.")
        if found.st_size > self.largest:
            raise InputError(
                f"{_quoted(name)}: has {found.st_size / MEGABYTE:,.0f} MB, and files of at most "
                f"{self.largest / MEGABYTE:,.0f} MB are read; start the server with a larger "
                "--largest."
            )
        return path

    def run(self, name: str) -> Path:
        """Return the folder of a run; check that its files may be read and are small enough."""
        path = self.existing(name)
        if not path.is_dir():
            raise InputError(f"{_quoted(name)}: is not a folder; name that of an earlier run.")
        for place in (path / name for name in (_RESULT, *SCORED)):
            # A scored table may be a folder of files, without folders inside.
            for item in place.glob("*") if place.is_dir() else [place] * place.exists():
                self.file(str(item))
        return path

    def new(self, name: str) -> Path:
        """Return a path for writing, which must be in an existing served folder."""
        for place in self._places(name):
            with suppress(OSError, ValueError):  # the name may be invalid
                if place.name and self._inside(place.parent) and place.parent.is_dir():
                    if place.is_symlink():
                        raise InputError(f"{_quoted(name)}: is a link, which is never replaced.")
                    return place.parent.resolve() / place.name
        raise InputError(f"{_quoted(name)}: is not in an existing folder that the server serves.")

    def shown(self, path: Path) -> str:
        """Return a path as callers name it: relative to the first folder, if possible."""
        first = self.folders[0]
        return str(path.relative_to(first) if path.is_relative_to(first) else path)

    def listed(self, name: str) -> list[str]:
        """List the tables, images, models and runs in a folder, the first 200 by name."""
        folder = self.existing(name)
        if not folder.is_dir():
            raise InputError(f"{_quoted(name)}: is not a folder.")
        return [*islice(self._items(folder), MOST_LISTED)]

    def _items(self, folder: Path) -> Iterator[str]:
        from kpca_apps.images.kinds import IMAGE_SUFFIXES  # importing this is slow

        listed = {*TABLE_SUFFIXES, *IMAGE_SUFFIXES, ".kpca"}
        for item in sorted(folder.iterdir()):
            if item.name.startswith(".") or not self._inside(item):
                continue
            if item.is_dir():
                yield f"{self.shown(item)}/" + " (a run)" * (item / _RESULT).is_file()
            elif item.suffix.lower() in listed:
                yield self.shown(item)

    def existing(self, name: str) -> Path:
        """Return an existing path inside the folders, with links resolved."""
        places = [place for place in self._places(name) if self._inside(place)]
        for place in places:
            with suppress(OSError, ValueError):  # the name may be invalid
                if place.exists():
                    return place.resolve()
        near = ""
        if places:
            with suppress(OSError, ValueError):
                near = suggest(places[0].name, [one.name for one in places[0].parent.iterdir()])
        raise InputError(f"{_quoted(name)}: no such file in the served folders.{near}")

    def _places(self, name: str) -> list[Path]:
        if "\0" in name or not name.strip() or ".." in Path(name).parts:
            raise InputError(f'{_quoted(name)}: is not allowed; name a file without "..".')
        return [folder / name for folder in self.folders]

    def _inside(self, place: Path) -> bool:
        try:
            real = place.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        return any(real.is_relative_to(folder) for folder in self.folders)


def _quoted(name: str) -> str:
    return one_line(name, 200) or '""'
