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

# These libraries have one thread count per process, whichever thread sets it. So the limit is also
# one per process: it holds while any caller, listed with its thread, is inside.
_LOCK, _LIMIT = Lock(), list[Any]()
_INSIDE: dict[object, int] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the linear algebra libraries to one thread, so that sums have a fixed order.

    The limit holds for the whole process until the last caller of any thread has left; then the
    original thread count is restored.
    """
    me = object()
    try:
        with _LOCK:
            if not _LIMIT:
                # An interrupt while the limit is set would leave it set for good.
                with interrupts_held():
                    _let_any_thread_set()
                    _LIMIT.append(_linear_algebra().limit(limits=1, user_api="blas"))
                    _let_any_thread_set()
            _INSIDE[me] = get_ident()
        yield
    finally:
        try:
            _leave(me)
        except BaseException:  # interrupted while leaving; blocking interrupts would cost too much
            _leave(me)
            raise


def _leave(me: object) -> None:
    _INSIDE.pop(me, None)
    if not _INSIDE:
        _lift()


def _lift() -> None:
    """Restore the original thread count if no caller is inside."""
    with interrupts_held(), _LOCK:
        if _LIMIT and not _INSIDE:
            _let_any_thread_set()
            _LIMIT.pop().restore_original_limits()
            _let_any_thread_set()


def _keep_own_thread() -> None:
    """Drop callers of other threads in a forked child, which has only the forking thread."""
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
    """Allow any thread to set the thread count."""
    # Newer versions of threadpoolctl let only the first caller's thread restore the count, but the
    # last to leave may be another thread.
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _linear_algebra() -> ThreadpoolController:
    """Return the loaded libraries of numpy and scipy; searching for them is slow."""
    return ThreadpoolController()
