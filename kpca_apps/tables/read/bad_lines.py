"""Lines that are left out of a text, because they cannot be read, and what is said of them."""

from __future__ import annotations

from kpca_apps.errors import InputError

__all__ = ["BadLines"]

_LISTED = 10  # of them are named


class BadLines:
    """Lines of a text that are left out, as was asked for: how many, and the first with why."""

    def __init__(self, label: str) -> None:
        self._label, self._n_lines, self._first = label, 0, ""

    def leave_out(self, line: int, cause: str) -> None:
        """Leave out one line."""
        self._n_lines += 1
        if self._n_lines <= _LISTED:
            self._first += f"{'; ' * bool(self._first)}line {line:,} {cause}"

    def notes(self, n_rows: int) -> list[str]:
        """List them beside the rows that were read; refuse more of them than there are rows."""
        n = self._n_lines
        if n > n_rows:
            raise InputError(
                f"{self._label}: {n:,} bad lines beside {n_rows:,} rows ({self._first}): this is "
                "read wrongly rather than damaged; look at the delimiter, encoding and header."
            )
        more = f"; and {n - _LISTED:,} more" if n > _LISTED else ""
        noun = "1 bad line was" if n == 1 else f"{n:,} bad lines were"
        return [f"{noun} left out: {self._first}{more}."] if n else []
