"""Experiments and their outcomes: claims of a paper beside our numbers.

Pages, pictures and files of numbers are made from an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Figure, Table

Verdict = Literal["reproduced", "reproduced with a condition", "not reproduced", "not run"]


@dataclass(frozen=True)
class Claim:
    """One number or statement of a paper beside ours."""

    what: str
    paper: float | str  # the paper's value
    ours: float | str
    tolerance: float | None  # largest difference that counts as equal; None for a statement
    verdict: Verdict
    why: str = ""  # the condition, or the reason why the claim does not hold
    source: str = ""  # the publication, if it differs from the experiment's publication

    def __post_init__(self) -> None:
        if self.verdict == "reproduced with a condition" and not self.why:
            raise ValueError(f"{self.what}: which condition?")


@dataclass(frozen=True, eq=False)
class Outcome:
    """Claims, figures, tables and notes of one experiment."""

    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of a paper to reproduce."""

    name: str
    paper: str  # authors, year, and the figure or table
    title: str
    data: tuple[str, ...]  # names of data sets
    run: Callable[[PaperData], Outcome]  # a deterministic function
    method: str = ""  # how it is reproduced, with assumptions that the paper does not state

    @property
    def heading(self) -> tuple[str, str, str]:
        """Name, paper and title."""
        return self.name, self.paper, self.title


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The outcome of an experiment, or why it did not run."""

    name: str
    paper: str
    title: str
    outcome: Outcome
    failed: str = ""  # why the experiment did not run
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of the data files, by path
    method: str = ""

    @property
    def is_untried(self) -> bool:
        """Whether no claim could be tested, for example because data are unavailable."""
        claims = self.outcome.claims
        return not self.failed and bool(claims) and all(c.verdict == "not run" for c in claims)


@dataclass(frozen=True)
class Place:
    """Where the project covers a part of a paper that no experiment shows."""

    what: str
    paper: str
    where: str


@dataclass(frozen=True)
class Reference:
    """A full citation; the year is empty if unknown."""

    authors: str
    year: str
    title: str
    where: str


@dataclass(frozen=True, eq=False)
class GalleryResult:
    """Results of several experiments, in the order of their papers."""

    reproductions: tuple[Reproduction, ...]
    command: str = ""  # the command that reproduces the result
    versions: dict[str, str] = field(default_factory=dict)
    elsewhere: tuple[Place, ...] = ()  # parts of papers shown in other places
    references: tuple[Reference, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of all data files used, by path."""
        return {k: v for run in self.reproductions for k, v in sorted(run.files.items())}

    @property
    def n_failed(self) -> int:
        """Number of experiments that did not run."""
        return sum(bool(run.failed) for run in self.reproductions)

    def count(self, verdict: Verdict) -> int:
        """Return the number of claims that have the given verdict."""
        return sum(c.verdict == verdict for run in self.reproductions for c in run.outcome.claims)
