"""Report progress from the denoising passes, also across processes."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

Listener = Callable[[float], None]
LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""Called by the passes with their progress from 0 to 1."""

_STEP = 0.002  # least increase of progress that is written to the file
_PAUSE = 0.2  # seconds between two reads of the file
_SHARE = struct.Struct("<d")


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with the progress, from 0 to 1, of work within the `with` block."""
    token = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(token)


@contextmanager
def share_of_work(done: float, share: float) -> Iterator[None]:
    """Map progress within the `with` block, 0 to 1, to progress from `done` to `done + share`."""
    if (outer := LISTENER.get()) is None:
        yield
        return
    with listening(lambda within: outer(min(done + share * within, 1.0))):
        yield


def part(number: int, of: int) -> AbstractContextManager[None]:
    """Report progress within the `with` block as that of part `number` (from 0) of `of` parts."""
    return share_of_work(number / of, 1 / of)


def writing(board: Path, number: int) -> Listener:
    """Return a listener that writes the progress of one image to a file for `watching`.

    Write errors, such as on a full disk, are ignored.
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
    """Call ``within(name, share)`` as progress is written to a file, until the block ends."""
    shares = [0.0] * len(names)
    with suppress(OSError):
        board.write_bytes(b"".join(map(_SHARE.pack, shares)))
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE):
            content = b""
            with suppress(OSError):
                content = board.read_bytes()
            # A full disk may have truncated the file.
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
