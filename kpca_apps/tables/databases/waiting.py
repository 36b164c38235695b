"""Waiting for a database: no longer than is allowed, and with an ear for an interrupt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kpca_apps.errors import InputError

T = TypeVar("T")
_STEP = 0.1  # seconds from one look at the clock to the next
_PATIENCE = 5.0  # seconds that a cancelled query is given to end


@dataclass
class Waiting:
    """Calls of a database in threads of their own, one after the other, until a deadline.

    Python hears an interrupt only between steps of its own: while a library waits for a server,
    another thread has to.
    """

    seconds: float | None  # all calls together; None: as long as they take
    cancel: Callable[[], None] | None = None  # ends the call that is going on
    is_stuck: bool = False  # whether one goes on although it was cancelled
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, function: Callable[[], T]) -> T:
        """Return what a function does, or cancel it where this is interrupted or takes too long."""
        done, result = threading.Event(), list[Any]()

        def work() -> None:
            try:
                result.extend((function(), None))
            except BaseException as error:
                result.extend((None, error))
            finally:
                done.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            self._wait(done)
        except BaseException:
            if self.cancel is not None:
                # It asks the server by another connection, which may hang as well.
                cancelling = threading.Thread(target=self.cancel, daemon=True)
                cancelling.start()
                cancelling.join(_PATIENCE)
            self.is_stuck = not done.wait(_PATIENCE if self.cancel is not None else 0)
            raise
        value, error = result
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def _wait(self, done: threading.Event) -> None:
        # A wait without an end goes on after an interrupt, once polars has a handler of its own.
        while not done.wait(_STEP):
            if self.seconds is not None and time.monotonic() > self._began + self.seconds:
                raise InputError(
                    f"what is read took longer than the {self.seconds:g} s of --timeout, and was "
                    "cancelled; allow more, or read less."
                )
