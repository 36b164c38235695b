"""CSV tables of claims, experiments, references and data files of the papers."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def read_table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a table, as dicts by name of column."""
    text = files(__name__).joinpath(f"{name}.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))
