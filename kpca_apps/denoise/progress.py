"""How far the work on an image is: from the passes to the run, also from a worker."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

Listener = Callable[[float], None]
LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""Called by the passes with the share of the work at hand that is done, from 0 to 1."""

_STEP = 0.002  # no smaller ones are written
_PAUSE = 0.2  # seconds between two looks
_SHARE = struct.Struct("<d")


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a function called with what is done in the block."""
    token = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(token)


@contextmanager
def share_of_work(done: float, share: float) -> Iterator[None]:
    """Let what is done in the block count as a share of the work, of which some is done before."""
    if (outer := LISTENER.get()) is None:
        yield
        return
    with listening(lambda within: outer(min(done + share * within, 1.0))):
        yield


def part(number: int, of: int) -> AbstractContextManager[None]:
    """Let what is done in the block count as one part, from 0, of several equal ones."""
    return share_of_work(number / of, 1 / of)


def writing(board: Path, number: int) -> Listener:
    """Return a listener that writes the share of one image to a file for `watching`.

    What cannot be written, on a full disk perhaps, is not shown: the work goes on.
    """
    last = 0.0

    def write(share: float) -> None:
        nonlocal last
        if share - last < _STEP:
            return
        last = share
        with suppress(OSError), board.open("r+b", buffering=0) as file:
            file.seek(_SHARE.size * (number - 1))
            file.write(_SHARE.pack(share))

    return write


@contextmanager
def watching(
    board: Path, names: Sequence[str], within: Callable[[str, float], None]
) -> Iterator[None]:
    """Call ``within(name, share)`` as shares are written to a file, until the block ends."""
    shares = [0.0] * len(names)
    with suppress(OSError):
        board.write_bytes(b"".join(map(_SHARE.pack, shares)))
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE):
            content = b""
            with suppress(OSError):
                content = board.read_bytes()
            # A full disk may have cut the file short, in the middle of a share perhaps.
            whole = content[: len(content) // _SHARE.size * _SHARE.size]
            for number, (share,) in enumerate(_SHARE.iter_unpack(whole)):
                if share != shares[number]:
                    shares[number] = share
                    within(names[number], share)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
