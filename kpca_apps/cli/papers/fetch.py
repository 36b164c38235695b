"""The work of ``kpca papers fetch``: download public data files and check their hashes."""

from __future__ import annotations

import os
import socket
from http.client import IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

from kpca_apps.cli.console import Console, say_line
from kpca_apps.cli.results import made_for_use
from kpca_apps.errors import InputError, StoppedError
from kpca_apps.papers.data import FILES, MissingDataError, PaperFile, read_paper_file

SECONDS = 60  # seconds to wait for data from a server
NO_SERVER = (socket.gaierror, ConnectionRefusedError)


class _NoServerError(InputError):
    """The server cannot be reached, so no other file can be fetched."""


def fetch_files(console: Console, folder: Path) -> int:
    """Fetch the missing data files; return the number of failures.

    A file with a wrong hash is not saved. Existing files are never replaced; an existing file with
    a wrong hash counts as a failure. If the server cannot be reached, no further file is fetched.
    """
    files = [file for group in FILES.values() for file in group]
    n_there = n_new = 0
    try:
        with made_for_use(folder):
            _make(folder)
            for file in files:
                if os.path.lexists(folder / file.path):
                    n_there += _is_valid(folder, file)
                else:
                    n_new += _is_fetched(console, folder, file)
    except _NoServerError as error:
        say_line(
            f"failed: {error}; {n_there + n_new} of {len(files)} files are there: run the same "
            "command again later"
        )
        return len(files) - n_there - n_new
    except KeyboardInterrupt:
        raise StoppedError(
            f"interrupted; {n_there + n_new} of {len(files)} files are there: run the same "
            "command again to resume"
        ) from None
    console.say(f"{n_there + n_new} of {len(files)} files are there, {n_there} from before.")
    if n_there + n_new == len(files):
        console.data_path(folder)
    return len(files) - n_there - n_new


def _is_valid(folder: Path, file: PaperFile) -> bool:
    try:
        read_paper_file(folder, file)
    except MissingDataError as error:
        say_line(f"failed: {error}")
        return False
    return True


def _is_fetched(console: Console, folder: Path, file: PaperFile) -> bool:
    target = folder / file.path
    with made_for_use(target.parent):
        _make(target.parent)
        try:
            with console.stage(f"Fetching {file.path}"):
                _fetch(file, target)
        except (OSError, ValueError) as error:
            say_line(f"failed: {_failure(file, target, error)}")
            return False
    console.say(f"{file.path}: {target.stat().st_size:,} bytes, as they should be.")
    return True


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made ({error.strerror}).", folder) from None


def _fetch(file: PaperFile, target: Path) -> None:
    """Download a file to a temporary name; rename it if its SHA-256 is correct."""
    from pooch import HTTPDownloader, get_logger, retrieve

    get_logger().setLevel("WARNING")
    downloader = HTTPDownloader(timeout=SECONDS, headers={"Accept-Encoding": "identity"})
    folder = target.parent.absolute()
    retrieve(file.address, f"sha256:{file.sha256}", target.name, folder, downloader=downloader)
    target.chmod(0o644)


def _failure(file: PaperFile, target: Path, error: Exception) -> InputError:
    if isinstance(error, OSError) and error.errno is not None:
        raise InputError(f"cannot be written ({error.strerror}).", target)
    if "does not match the known hash" in str(error):
        return InputError(
            f"{file.path}: the file at {file.address} has changed (its SHA-256 differs); it was "
            "not saved."
        )
    root: BaseException = error
    while cause := root.__cause__ or root.__context__:
        root = cause
    if isinstance(root, NO_SERVER):
        server = urlsplit(file.address).hostname
        raise _NoServerError(f"{file.path}: {server} cannot be reached ({root.strerror})")
    if isinstance(root, IncompleteRead) and root.expected is not None:
        n_bytes = int(root.partial)  # urllib3 gives a number of bytes, unlike the standard library
        return InputError(
            f"{file.path}: stopped after {n_bytes:,} of {n_bytes + root.expected:,} bytes; try "
            "again."
        )
    if root is not error and not isinstance(root, OSError):
        root = ValueError("its answer cannot be understood")
    why = getattr(root, "strerror", None) or str(root)
    return InputError(f"{file.path}: cannot be fetched ({why.partition(chr(10))[0]}).")
