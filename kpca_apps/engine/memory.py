"""How much memory a fit needs, and a refusal before anything is allocated."""

from __future__ import annotations

from kpca_apps.engine.eigen import block_width, krylov_basis_limit
from kpca_apps.engine.panels import PANEL
from kpca_apps.errors import MemoryLimitError
from kpca_apps.memory import available_bytes

__all__ = [
    "default_budget",
    "krylov_fit_bytes",
    "lapack_fit_bytes",
    "nystroem_fit_bytes",
    "require",
    "require_nystroem",
    "resolved_budget",
    "size_text",
]

_ITEMS = {"float32": 4, "float64": 8}
_ITEM = _ITEMS["float64"]
"""Bytes of a number."""


def default_budget() -> int:
    """Return the bytes a fit may take unless told otherwise: a quarter of what is available."""
    return available_bytes() // 4


def resolved_budget(budget: int | None) -> int:
    """Return the bytes a fit may take: those given, else the default."""
    return default_budget() if budget is None else budget


def lapack_fit_bytes(n: int, n_vectors: int, precision: str = "float64") -> int:
    """Return the bytes of an exact fit by LAPACK: the Gram matrix, and vectors twice.

    Parameters
    ----------
    n : int
        Rows.
    n_vectors : int
        Vectors of length n that LAPACK returns.
    precision : {"float32", "float64"}
        Of the Gram matrix; vectors end in float64.
    """
    item = _ITEMS[precision]
    return item * n * (n + n_vectors) + _ITEM * n * n_vectors


def krylov_fit_bytes(n: int, d: int, q: int, precision: str, stored: bool) -> int:
    """Return the bytes of an exact fit by iteration, beyond the rows.

    Half a Gram matrix if it is stored; the basis and its products; and what one product takes, or,
    when the iteration is done, its vectors and their image, and the vectors again in float64.

    Parameters
    ----------
    n, d, q : int
        Rows, columns, components.
    precision : {"float32", "float64"}
    stored : bool
        Whether the Gram matrix is kept.
    """
    item, b = _ITEMS[precision], block_width(q)
    gram = item * n * (n + PANEL) // 2 if stored else 0
    kernel = item * n * (d + 2)
    basis = krylov_basis_limit(n, q)
    iteration = item * n * 6 * b
    refinement = item * n * 2 * q + _ITEM * n * q
    small = _ITEM * 4 * basis * basis
    return gram + kernel + 2 * item * n * basis + max(iteration, refinement) + small


def nystroem_fit_bytes(n_landmarks: int, n_features: int, block: int = 4096) -> int:
    """Return the bytes of a Nystrom fit beyond its rows.

    About four m x m matrices, and of one block what is summed of its kernel values and some of
    these values themselves.
    """
    matrices = 30 * n_landmarks
    return n_landmarks * (matrices + 12 * block + 2 * _ITEM * n_features)


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
            f"{what} needs {size_text(needed)}, {bound} is {size_text(allowed)}: {advice}."
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


def size_text(n_bytes: int) -> str:
    """Return a number of bytes as MB or GB.

    Examples
    --------
    >>> size_text(20_600_000), size_text(3_200_000_000)
    ('20.6 MB', '3.2 GB')
    """
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.3g} MB"
