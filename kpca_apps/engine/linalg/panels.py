"""The upper triangle of a Gram matrix in panels, stored or recomputed for every product."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike

from kpca_apps.engine.kernels import Kernel, KernelRows
from kpca_apps.engine.linalg.gram import overflow
from kpca_apps.engine.rows import in_order
from kpca_apps.system.arrays import Matrix, Values

PANEL = 256  # number of rows per panel; a tile and its product fit into a core's cache
TILE = 1024  # number of columns per tile
SAMPLE = 256  # number of rows that a sketch samples
ELSEWHERE = 0.01  # weight of the input vectors in a sketch


class GramPanels:
    """The matrix K_ij = k(x_i, x_j), from the tiles on and above its diagonal.

    ``dtype`` is the type of kernel values and products. ``stored`` keeps the tiles, n^2 / 2 values;
    otherwise they are recomputed for every product, in the memory of a few tiles.
    """

    # Each product uses a tile twice, as it is and transposed. Tiles are added in a fixed order, so
    # the number of threads does not change the result.

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        dtype: DTypeLike,
        *,
        stored: bool,
        n_jobs: int | None = None,
    ) -> None:
        self._kernel, self._X, self._dtype, self._n_jobs = kernel, X, np.dtype(dtype), n_jobs
        self._columns = [
            (start, self._against(start, start + TILE)) for start in range(0, len(X), TILE)
        ]
        self._sums: Matrix | None = None
        self._stored_tiles: list[list[Values]] | None = None
        if stored:
            self._stored_tiles = list(in_order(self._compute_panel, self._starts, n_jobs))

    def __len__(self) -> int:
        return len(self._X)

    @property
    def row_sums(self) -> Matrix:
        """Row sums of K; ValueError if values overflow."""
        if self._sums is None:
            self.product(np.empty((len(self), 0), dtype=self._dtype))
        assert self._sums is not None
        return self._sums

    def product(self, V: Values) -> Values:
        """Return K V for V of shape ``(n, b)``."""
        V = np.asarray(V, dtype=self._dtype)
        if self._sums is not None:
            return self._multiply(V)
        # Compute row sums as one more column of this product.
        ones = np.ones((len(V), 1), dtype=self._dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            W = self._multiply(np.hstack([V, ones]))
        self._sums = W[:, -1].astype(np.float64)
        if not np.isfinite(self._sums).all():
            raise overflow(self._kernel)
        return np.ascontiguousarray(W[:, :-1])

    def sketch(self, V: Values) -> Values:
        """Return an approximation of K V, its columns scaled to the lengths of V's columns."""
        # Multiply the columns of K that belong to sampled rows by the same rows of V. Then add
        # ELSEWHERE times V, for directions that the sample misses.
        n = len(self)
        sample = np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.intp))
        kernel_rows = self._kernel.against(self._X[sample], self._dtype)
        chosen = np.asarray(V[sample], dtype=self._dtype)
        parts = in_order(
            lambda start: kernel_rows(self._X[start : start + PANEL]) @ chosen,
            self._starts,
            self._n_jobs,
        )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            estimate = np.concatenate(list(parts))
            estimate *= np.linalg.norm(V, axis=0) / np.linalg.norm(estimate, axis=0)
        # The sketch is useless if the kernel under- or overflows on the sample.
        estimate[:, ~np.isfinite(estimate).all(axis=0)] = 0.0
        estimate += ELSEWHERE * V
        return estimate

    def _multiply(self, V: Values) -> Values:
        W = np.zeros(V.shape, dtype=self._dtype)
        parts = in_order(lambda start: self._panel_product(start, V), self._starts, self._n_jobs)
        for start, (own, below) in zip(self._starts, parts, strict=True):
            stop = start + len(own)
            W[start:stop] += own
            W[stop:] += below
        return W

    def _panel_product(self, start: int, V: Values) -> tuple[Values, Values]:
        """Return a panel's contribution to its own rows and to the rows below."""
        stop = min(start + PANEL, len(V))
        own = np.zeros((stop - start, V.shape[1]), dtype=self._dtype)
        below = np.empty((len(V) - stop, V.shape[1]), dtype=self._dtype)
        for first, tile in self._tiles(start):
            last = first + tile.shape[1]
            own += tile @ V[first:last]
            beyond = max(first, stop)
            if beyond < last:
                transposed = tile[:, beyond - first :].T
                np.matmul(transposed, V[start:stop], out=below[beyond - stop : last - stop])
        return own, below

    def _tiles(self, start: int) -> Iterator[tuple[int, Values]]:
        """Yield the panel's tiles, each with the number of its first column."""
        if self._stored_tiles is None:
            yield from self._compute_tiles(start)
            return
        first = start
        for tile in self._stored_tiles[start // PANEL]:
            yield first, tile
            first += tile.shape[1]

    def _compute_panel(self, start: int) -> list[Values]:
        """Compute the tiles of a panel as views of one array."""
        tiles = []
        panel = np.empty((min(PANEL, len(self) - start), len(self) - start), dtype=self._dtype)
        for first, computed in self._compute_tiles(start):
            tile = panel[:, first - start : first - start + computed.shape[1]]
            tile[:] = computed
            tiles.append(tile)
        return tiles

    def _compute_tiles(self, start: int) -> Iterator[tuple[int, Values]]:
        rows = self._X[start : start + PANEL]
        on_diagonal = start // TILE
        with np.errstate(over="ignore", invalid="ignore"):
            yield start, self._against(start, (on_diagonal + 1) * TILE)(rows)
            for first, kernel_rows in self._columns[on_diagonal + 1 :]:
                yield first, kernel_rows(rows)

    def _against(self, start: int, stop: int) -> KernelRows:
        return self._kernel.against(self._X[start:stop], self._dtype)

    @property
    def _starts(self) -> range:
        return range(0, len(self._X), PANEL)


def centred(gram: GramPanels) -> Callable[[Values], Values]:
    """Return the map V -> HKHV, H = I - 11'/n, without forming HKH."""

    def product(V: Values) -> Values:
        W = gram.product(V - V.mean(axis=0))
        W -= W.mean(axis=0)
        return W

    return product
