from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowPart:
    """Rows ``start`` to ``stop - 1``."""

    number: int
    start: int
    stop: int


def row_parts(n: int, rows: int) -> list[RowPart]:
    starts = range(0, n, rows)
    return [RowPart(k, start, min(start + rows, n)) for k, start in enumerate(starts)]
