"""Which cases of a test run every time, and which only before a release."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def quick(cases: Iterable[Any], *in_each_run: Any) -> list[Any]:
    """Return parametrize cases; all but `in_each_run` are marked ``release``.

    Each case is a value, or a tuple of values for several parameters.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in in_each_run else pytest.mark.release,
        )
        for case in cases
    ]


def examples(in_each_run: int) -> settings:
    """Return hypothesis settings with this many examples, or those of the "long" profile."""
    is_long = settings.get_current_profile_name() == "long"
    return settings() if is_long else settings(max_examples=in_each_run)
