from __future__ import annotations

import warnings
from contextlib import ExitStack

import pytest

from kpca_apps.images.types import damage_refused
from kpca_apps.system.quiet import warnings_ignored


def test_threads_that_overlap_leave_the_filters_as_they_were() -> None:
    before = list(warnings.filters)
    first, second = ExitStack(), ExitStack()
    first.enter_context(damage_refused())
    second.enter_context(damage_refused())
    first.close()
    warnings.warn("still inside", UserWarning, stacklevel=1)
    second.close()
    assert list(warnings.filters) == before


def test_an_error_inside_leaves_the_filters_as_they_were() -> None:
    before = list(warnings.filters)
    with pytest.raises(ZeroDivisionError), warnings_ignored():
        raise ZeroDivisionError
    assert list(warnings.filters) == before
