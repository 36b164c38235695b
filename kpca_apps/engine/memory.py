"""How much memory a fit needs, and a refusal before anything is allocated."""

from __future__ import annotations

from kpca_apps.errors import MemoryLimitError
from kpca_apps.memory import available_bytes

__all__ = [
    "default_budget",
    "exact_fit_bytes",
    "nystroem_fit_bytes",
    "require",
    "require_nystroem",
]

_ITEM = 8
"""Bytes of a float64."""


def default_budget() -> int:
    """Return the bytes a fit may take unless told otherwise: a quarter of what is available."""
    return available_bytes() // 4


def exact_fit_bytes(n: int, n_vectors: int) -> int:
    """Return the bytes of an exact fit: the Gram matrix, and vectors twice.

    Parameters
    ----------
    n : int
        Rows.
    n_vectors : int
        Vectors of length n held at once: components, or the basis of an iteration.
    """
    return _ITEM * n * (n + 2 * n_vectors)


def nystroem_fit_bytes(n_landmarks: int, n_features: int, block: int = 4096) -> int:
    """Return the bytes of a Nystrom fit beyond its rows: six m x m matrices and one block."""
    return _ITEM * n_landmarks * (6 * n_landmarks + 3 * block + 2 * n_features)


def require(needed: int, budget: int | None, what: str, advice: str) -> None:
    """Refuse work whose memory exceeds the budget.

    Parameters
    ----------
    needed : int
        Estimated bytes.
    budget : int, optional
        Bytes allowed; `default_budget` if None.
    what : str
        What needs them, with its size, such as "The Gram matrix of n = 50000 rows".
    advice : str
        What helps, as an imperative; a budget that was given may also be raised.

    Raises
    ------
    MemoryLimitError

    Examples
    --------
    >>> require(2 * 10**9, 10**9, "The Gram matrix of n = 15000 rows", "use method='nystroem'")
    Traceback (most recent call last):
    ...
    kpca_apps.errors.MemoryLimitError: The Gram matrix of n = 15000 rows needs 2.0 GB,
    the budget is 1.0 GB: use method='nystroem', or raise memory_budget.
    """
    if budget is None:
        allowed, bound = default_budget(), "a quarter of the available memory"
    else:
        allowed, bound, advice = budget, "the budget", f"{advice}, or raise memory_budget"
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {_text(needed)}, {bound} is {_text(allowed)}: {advice}."
        )


def require_nystroem(n_landmarks: int, n_features: int, budget: int | None = None) -> None:
    """Refuse a Nystrom fit whose memory exceeds the budget.

    Parameters
    ----------
    n_landmarks : int
        Landmarks the fit will have: no more than there are rows to draw them from.
    n_features : int
        Columns of the matrix the kernel sees.
    budget : int, optional
        Bytes allowed; `default_budget` if None.

    Raises
    ------
    MemoryLimitError
        Naming the number of landmarks.
    """
    needed = nystroem_fit_bytes(n_landmarks, n_features)
    require(needed, budget, f"A Nystrom fit with {n_landmarks} landmarks", "use fewer landmarks")


def _text(n_bytes: int) -> str:
    """Return a number of bytes as MB or GB."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.3g} MB"
