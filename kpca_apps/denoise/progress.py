"""How far the work on an image is: told by the passes, heard by the run, also from a worker."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

__all__ = ["Listener", "listening", "part", "tell", "watching", "writing"]

Listener = Callable[[float], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_STEP = 0.002  # no smaller ones are written
_PAUSE = 0.2  # seconds between two looks
_SHARE = struct.Struct("<d")


def tell(share: float) -> None:
    """Say what share of the work at hand is done, from 0 to 1, if anybody listens."""
    if (listener := _LISTENER.get()) is not None:
        listener(min(share, 1.0))


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear what is told in the block.

    Examples
    --------
    >>> heard = []
    >>> with listening(heard.append), part(1, 4):
    ...     tell(0.5)
    >>> heard
    [0.375]
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def part(number: int, of: int) -> Iterator[None]:
    """Let what is told in the block count as that of one part, from 0, of several equal ones."""
    outer = _LISTENER.get()
    if outer is None:
        yield
        return
    heard = outer
    with listening(lambda share: heard((number + share) / of)):
        yield


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

    def look() -> None:
        content = b""
        with suppress(OSError):
            content = board.read_bytes()
        # A full disk may have cut the file short, in the middle of a share perhaps.
        whole = content[: len(content) // _SHARE.size * _SHARE.size]
        found = [share for (share,) in _SHARE.iter_unpack(whole)]
        for number, share in enumerate(found):
            if share != shares[number]:
                shares[number] = share
                within(names[number], share)

    def watch() -> None:
        while not ended.wait(_PAUSE):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
