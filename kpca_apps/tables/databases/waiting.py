"""Waiting for a database: no longer than is allowed, and with an ear for an interrupt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TypeVar

from kpca_apps.errors import InputError
from kpca_apps.system.interrupts import heard_while

T = TypeVar("T")
_PATIENCE = 5.0  # seconds that a cancelled query is given to end


@dataclass
class Waiting:
    """Calls of a database in threads of their own, one after the other, until a deadline."""

    seconds: float | None  # all calls together; None: as long as they take
    cancel: Callable[[], None] | None = None  # ends the call that is going on
    is_stuck: bool = False  # whether one goes on although it was cancelled
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, function: Callable[[], T]) -> T:
        """Return what a function does, or cancel it where this is interrupted or takes too long."""
        return heard_while(function, self._look, self._give_up)

    def _look(self) -> None:
        if self.seconds is not None and time.monotonic() > self._began + self.seconds:
            raise InputError(
                f"what is read took longer than the {self.seconds:g} s of --timeout, and was "
                "cancelled; allow more, or read less."
            )

    def _give_up(self, call: Future[T]) -> None:
        if self.cancel is not None:
            # It asks the server by another connection, which may hang as well.
            cancelling = threading.Thread(target=self.cancel, daemon=True)
            cancelling.start()
            cancelling.join(_PATIENCE)
        self.is_stuck = not wait((call,), _PATIENCE if self.cancel is not None else 0).done
