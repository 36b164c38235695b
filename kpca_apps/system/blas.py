"""Limit linear algebra libraries to one thread, for a fixed order of sums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

import scipy.linalg  # noqa: F401  (loads the library that is to be limited)
from threadpoolctl import OpenBLASController, ThreadpoolController

from kpca_apps.system.interrupts import interrupts_held

# The libraries have one thread count per process, so the limit applies to the whole process, until
# all callers have left. `_INSIDE` lists each caller with its thread.
_LOCK, _LIMIT = Lock(), list[Any]()
_INSIDE: dict[object, int] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the linear algebra libraries to one thread, so that sums have a fixed order.

    The limit holds for the whole process. When no thread is inside the block any more, the original
    thread count is restored.
    """
    me = object()
    try:
        with _LOCK:
            if not _LIMIT:
                # An interrupt between these lines would leave the limit set forever.
                with interrupts_held():
                    _let_any_thread_set()
                    _LIMIT.append(_linear_algebra().limit(limits=1, user_api="blas"))
                    _let_any_thread_set()
            _INSIDE[me] = get_ident()
        yield
    finally:
        try:
            _leave(me)
        # If an interrupt stopped `_leave`, repeat it; deferring interrupts costs too much here.
        except BaseException:
            _leave(me)
            raise


def _leave(me: object) -> None:
    _INSIDE.pop(me, None)
    if not _INSIDE:
        _lift()


def _lift() -> None:
    with interrupts_held(), _LOCK:
        if _LIMIT and not _INSIDE:
            _let_any_thread_set()
            _LIMIT.pop().restore_original_limits()
            _let_any_thread_set()


def _keep_own_thread() -> None:
    """Drop the callers of other threads: a forked child has only the thread that forked it."""
    _LOCK.release()
    for caller, thread in [*_INSIDE.items()]:
        if thread != get_ident():
            del _INSIDE[caller]
    if not _INSIDE:
        _lift()


if hasattr(os, "register_at_fork"):
    # A child forked while another thread holds the lock would wait for it forever.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_keep_own_thread
    )


def _let_any_thread_set() -> None:
    # In newer versions of threadpoolctl, only the thread that set a limit may lift it. Here, the
    # last caller, which lifts the limit, may run in another thread.
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return the loaded libraries of numpy and scipy, which take long to find."""
    return ThreadpoolController()
