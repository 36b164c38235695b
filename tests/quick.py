"""Which cases of a test belong to each run, and which are kept for a release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *in_each_run: Any) -> list[Any]:
    """Return cases to parametrise with, marked ``release`` but for those of each run.

    A tuple is one value for each of several names.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in in_each_run else pytest.mark.release,
        )
        for case in cases
    ]
