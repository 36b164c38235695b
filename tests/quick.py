"""What of a test belongs to each run, and what is kept for a release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


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


def examples(in_each_run: int) -> settings:
    """Let a property have so many examples in each run, and in a long one those of its profile."""
    is_long = settings.get_current_profile_name() == "long"
    return settings() if is_long else settings(max_examples=in_each_run)
