"""Ignore what libraries warn of, in any number of threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

_LOCK, _INSIDE, _FILTERS = Lock(), list[object](), ExitStack()


@contextmanager
def warnings_ignored() -> Iterator[None]:
    """Ignore warnings in this process until the last thread that asked for it has left.

    `warnings.catch_warnings` restores what each thread found: the last of several threads to leave
    would find, and restore, the filters of another.
    """
    me = object()
    with _LOCK:
        if not _INSIDE:
            _FILTERS.enter_context(warnings.catch_warnings(action="ignore"))
        _INSIDE.append(me)
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE.remove(me)
            if not _INSIDE:
                _FILTERS.close()
