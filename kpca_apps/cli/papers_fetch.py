"""The work of ``kpca papers fetch``: public copies of data files, checked before they are kept."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kpca_apps.cli.console import Console, say_line
from kpca_apps.errors import InputError, StoppedError
from kpca_apps.files.names import one_line
from kpca_apps.files.output import atomic_write
from kpca_apps.papers.data import (
    FILES,
    MOST_BYTES,
    MissingDataError,
    PaperFile,
    is_the_file,
    read_paper_file,
)

__all__ = ["fetch_files"]

SCHEMES = ("https",)
SECONDS = 60  # without a byte, before a server is given up
SECONDS_A_FILE = 600
PIECE = 1 << 16
MOST_DIGITS = 19  # of a length that a server may state
NO_SERVER = (socket.gaierror, ConnectionRefusedError)


class _NoServerError(InputError):
    """The server cannot be reached at all, so no other file can be had from it either."""


def fetch_files(console: Console, folder: Path) -> int:
    """Fetch every data file that is not there; what is not the file it should be is not kept.

    Nothing is replaced: something else under the name of a file stays, and counts as a failure.
    Where the server cannot be reached, no further file is tried. No empty folder is left.

    Parameters
    ----------
    console : Console
    folder : Path
        Made if it does not exist; its parent must.

    Returns
    -------
    int
        How many files could not be had.

    Raises
    ------
    InputError
        If the folder cannot be made or written to.
    StoppedError
        If it was interrupted; what was fetched is kept.
    """
    files = [file for group in FILES.values() for file in group]
    n_there = n_new = 0
    try:
        with _folder(folder):
            for file in files:
                if os.path.lexists(folder / file.path):
                    n_there += _is_right(folder, file)
                else:
                    n_new += _kept(console, file, folder / file.path)
    except _NoServerError as error:
        say_line(
            f"failed: {error}; {n_there + n_new} of {len(files)} files are there: run the same "
            "command again when it can be"
        )
        return len(files) - n_there - n_new
    except KeyboardInterrupt:
        raise StoppedError(
            f"interrupted; {n_there + n_new} of {len(files)} files are there: run the same command "
            "again to go on"
        ) from None
    console.say(f"{n_there + n_new} of {len(files)} files are there, {n_there} from before.")
    if n_there + n_new == len(files):
        console.data_path(folder)
    return len(files) - n_there - n_new


def _is_right(folder: Path, file: PaperFile) -> bool:
    """Tell whether what is there is the file, or say why not."""
    try:
        read_paper_file(folder, file)
    except MissingDataError as error:
        say_line(f"failed: {error}")
        return False
    return True


def _kept(console: Console, file: PaperFile, target: Path) -> bool:
    """Fetch a file and keep it, or say why it cannot be had."""
    with _folder(target.parent):
        try:
            with console.stage(f"Fetching {file.path}"):
                content = _fetched(file)
        except _NoServerError:
            raise
        except InputError as error:
            say_line(f"failed: {error}")
            return False
        with atomic_write(target) as stream:
            stream.write(content)
    console.say(f"{file.path}: {len(content):,} bytes, as they should be.")
    return True


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make a folder where there is none; one that stays empty is removed again."""
    is_new = not os.path.lexists(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        label = one_line(str(folder), 200)
        raise InputError(f"{label}: cannot be made ({error.strerror}).") from None
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()


class _Redirects(HTTPRedirectHandler):
    """Follows a server to another address only where that is as safe."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Refuse an address that anybody on the way could answer for."""
        if urlsplit(newurl).scheme not in SCHEMES:
            raise HTTPError(newurl, code, "sent on to an address without https", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetched(file: PaperFile) -> bytes:
    """Return the bytes of a file, or say why they cannot be had."""
    try:
        with _opened(file.address) as answer:
            content = _received(answer)
            length = str(answer.headers["Content-Length"])
    except (OSError, HTTPException, ValueError) as error:
        raise _failure(file, error) from None
    is_told = length.isdecimal() and len(length) <= MOST_DIGITS
    if is_told and len(content) < min(int(length), MOST_BYTES):
        raise InputError(
            f"{file.path}: broke off after {len(content):,} of {int(length):,} bytes; try again."
        )
    if not is_the_file(file, content):
        raise InputError(
            f"{file.path}: another file stands at {file.address} now (its SHA-256 differs); it was "
            "not kept."
        )
    return content


def _opened(address: str) -> HTTPResponse:
    answer: HTTPResponse = build_opener(_Redirects).open(address, timeout=SECONDS)
    return answer


def _received(answer: HTTPResponse) -> bytes:
    """Read an answer piece by piece, so that a server that drips is given up too."""
    content, until = bytearray(), time.monotonic() + SECONDS_A_FILE
    while len(content) < MOST_BYTES and (piece := answer.read1(PIECE)):
        content += piece
        if time.monotonic() > until:
            raise TimeoutError(f"only {len(content):,} bytes in {SECONDS_A_FILE} seconds")
    return bytes(content)


def _failure(file: PaperFile, error: Exception) -> InputError:
    """Say in a line why a file could not be fetched."""
    cause = error.reason if type(error) is URLError else error
    if isinstance(error, HTTPError):
        error.close()
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    if isinstance(cause, NO_SERVER):
        server = urlsplit(file.address).hostname
        return _NoServerError(f"{file.path}: {server} cannot be reached ({why})")
    # Of a circle of redirects the library says three lines.
    return InputError(f"{file.path}: cannot be fetched ({why.partition(chr(10))[0]}).")
