from __future__ import annotations

import pytest

from kpca_apps.engine import memory
from kpca_apps.engine.exact import bytes_needed
from kpca_apps.errors import MemoryLimitError


def test_default_budget_is_a_quarter_of_what_is_available(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    assert memory.default_budget() == 250


def test_refusal_names_size_budget_and_way_out():
    with pytest.raises(MemoryLimitError) as refusal:
        memory.require(3 * 10**9, 2 * 10**6, "The thing", "use less")
    assert str(refusal.value) == (
        "The thing needs 3.0 GB, the budget is 2 MB: use less, or raise memory_budget."
    )
    assert refusal.value.exit_code == 4
    memory.require(10, 10, "The thing", "use less")


def test_refusal_without_a_budget_says_where_the_bound_comes_from(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 10**6)
    with pytest.raises(MemoryLimitError) as refusal:
        memory.require_nystroem(10_000, 5)
    assert str(refusal.value) == (
        "A Nystrom fit with 10000 landmarks needs 5.8 GB, a quarter of the available memory is "
        "2 MB: use fewer landmarks."
    )


def test_a_nystroem_fit_is_refused_by_its_estimate():
    needed = memory.nystroem_fit_bytes(500, 7)
    memory.require_nystroem(500, 7, needed)
    with pytest.raises(MemoryLimitError, match=r"500 landmarks .* use fewer landmarks, or raise"):
        memory.require_nystroem(500, 7, needed - 1)


def test_estimates_grow_with_the_work():
    assert bytes_needed(2000, 5) >= 8 * 2000**2 // 2
    assert bytes_needed(1000, 5) >= 8 * 1000**2
    assert bytes_needed(2000, 5, precision="float32") < bytes_needed(2000, 5)
    assert bytes_needed(2000, None) > bytes_needed(2000, 5)
    assert bytes_needed(1000, 5, indefinite=True) > bytes_needed(1000, 5)
    assert memory.nystroem_fit_bytes(2000, 5) > memory.nystroem_fit_bytes(1000, 5)
