"""One run at a time in a folder of a store, where nothing can be locked.

A run keeps an object there and writes it anew from time to time. One that was killed leaves its
object as it was, which is known by its process that is no more, or elsewhere by its age, on the
clock of the store, and is removed by the next.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kpca_apps.errors import KpcaError, RefusedError
from kpca_apps.system.stores.buckets import Place

RUNS = ".kpca-runs"  # folder of what runs keep while they write
_ANEW, _DEAD = 15.0, 60.0  # seconds: between two writes, and from which on a run was killed
# Of this machine, not by its name; and of this process, whose number another may have had before.
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_PROCESS = secrets.token_hex(4)


@contextmanager
def only_run(place: Place) -> Iterator[None]:
    """Refuse a folder that another run writes to, and have others refused while the block runs.

    Two that begin at the same moment may both be refused, but never both go on.
    """
    process = f"{_MACHINE}-{os.getpid()}-{_PROCESS}"
    own = place.inside(f"{RUNS}/{process}-{secrets.token_hex(4)}")
    ended = threading.Event()

    def write_anew() -> None:
        while not ended.wait(_ANEW):
            with suppress(KpcaError):
                own.write([])

    own.write([])
    try:
        runs = {one.name: one.modified for one in place.inside(RUNS).items()}
        now = runs.pop(own.name, 0.0)
        if any(now - written < _DEAD and not _has_ended(name) for name, written in runs.items()):
            raise RefusedError(
                "another run is writing to this folder, or was killed a moment ago; wait a "
                "minute, or choose another folder.",
                place.address,
            )
    except BaseException:
        own.remove()
        raise
    keeper = threading.Thread(target=write_anew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        with suppress(KpcaError):
            place.inside(RUNS).remove_folder()


def _has_ended(name: str) -> bool:
    """Whether a run, by the name of its object, is of a process of this machine that is no more."""
    machine, number, process, *_ = [*name.split("-"), "", "", ""]
    if machine != _MACHINE or not number.isdigit() or os.name != "posix":
        return False
    if int(number) == os.getpid():
        return process != _PROCESS
    try:
        os.kill(int(number), 0)  # which asks, and does nothing
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False
