"""The work of ``kpca papers fetch``: public copies of data files, checked before they are kept."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from kpca_apps.cli.console import Console, say_line
from kpca_apps.errors import InputError
from kpca_apps.files.atomic import atomic_write
from kpca_apps.files.names import one_line

if TYPE_CHECKING:
    from kpca_apps.papers.data import PaperFile

__all__ = ["fetch_files"]

MOST_BYTES = 20_000_000
SECONDS = 60  # without a byte, before a server is given up


def fetch_files(console: Console, folder: Path) -> int:
    """Fetch every data file that is not there; what is not the file it should be is not kept.

    Parameters
    ----------
    console : Console
    folder : Path
        Made if it does not exist; its parent must.

    Returns
    -------
    int
        How many files could not be had.
    """
    from kpca_apps.papers.data import FILES, is_the_file

    files = [file for group in FILES.values() for file in group]
    _make(folder)
    n_failed = n_there = 0
    for file in files:
        target = folder / file.path
        if target.is_file() and is_the_file(file, target.read_bytes()):
            n_there += 1
            continue
        try:
            with console.stage(f"Fetching {file.path}"):
                content = _fetched(file)
        except InputError as error:
            n_failed += 1
            say_line(f"failed: {error}")
            continue
        _make(target.parent)
        with atomic_write(target) as stream:
            stream.write(content)
        console.say(f"{file.path}: {len(content):,} bytes, as they should be.")
    console.say(f"{len(files) - n_failed} of {len(files)} files are there, {n_there} from before.")
    console.data(str(folder))
    return n_failed


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        label = one_line(str(folder), 200)
        raise InputError(f"{label}: cannot be made ({error.strerror}).") from None


def _fetched(file: PaperFile) -> bytes:
    """Return the bytes of a file, or say why they cannot be had."""
    from kpca_apps.papers.data import is_the_file

    try:
        with urlopen(file.address, timeout=SECONDS) as answer:
            content: bytes = answer.read(MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise InputError(f"{file.path}: cannot be fetched ({why}): {file.address}") from None
    if not is_the_file(file, content):
        raise InputError(
            f"{file.path}: another file stands at {file.address} now (its SHA-256 differs); it was "
            "not kept."
        )
    return content
