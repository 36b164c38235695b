"""Suppress warnings of libraries, safely with several threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

_LOCK, _INSIDE, _FILTERS = Lock(), list[object](), ExitStack()


@contextmanager
def warnings_ignored() -> Iterator[None]:
    """Ignore warnings in this process until no thread is inside the block.

    `warnings.catch_warnings` is not enough: with overlapping threads, the last to leave would
    restore the filters that another thread had set.
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
