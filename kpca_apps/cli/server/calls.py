"""Calls in a separate process, which ends when a call is cancelled or the server stops."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from anyio import BrokenWorkerProcess, to_process

from kpca_apps.cli.server.tools import OF_TOOLS, Tools
from kpca_apps.errors import KpcaError
from kpca_apps.options import in_keywords
from kpca_apps.system.workers import begin_process

_begin = cache(begin_process)


async def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a separate process; cancelling the call kills the process."""
    try:
        return await to_process.run_sync(
            _owned, os.getpid(), function, *arguments, cancellable=True
        )
    except BrokenWorkerProcess:
        return Refusal("the process of this call was killed, perhaps because memory ran out")


def _owned(owner: int, function: Callable[..., Any], *arguments: Any) -> Any:
    _begin(owner)
    return function(*arguments)


class Refusal(str):
    """An error message that replaces an answer."""


def call_tool(tools: Tools, name: str, arguments: dict[str, Any]) -> Any:
    """Return the answer of a tool, or an error message of one line."""
    try:
        return getattr(tools, name)(**arguments)
    except KpcaError as error:
        return Refusal(in_keywords(str(error), OF_TOOLS))
    except MemoryError:
        return Refusal("not enough memory on this machine")
    except Exception as error:
        if os.environ.get("KPCA_DEBUG") == "1":
            raise
        return Refusal(f"a bug in kpca, {type(error).__name__}: {error} (please report it)")
