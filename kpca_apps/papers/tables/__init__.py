"""What the papers claim and cite, how they are rerun, and where their data are: CSV files."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def read_table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a table of this folder, by the heads of its columns."""
    text = files(__name__).joinpath(f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))
