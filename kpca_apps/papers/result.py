"""Experiments and what they come to: claims of a paper beside our numbers, figures and tables.

A page, a picture and a file of numbers are three views of one `Outcome`; nothing here draws.
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
    """One number or statement of a paper beside ours; its value is read in the paper."""

    what: str
    paper: float | str  # the value to come near
    ours: float | str  # as measured here
    tolerance: float | None  # the difference that counts as the same; None for statements
    verdict: Verdict
    why: str = ""  # the condition, or the reason why it does not hold
    source: str = ""  # which text, "1996 report, B.2", where not the one the experiment is of

    def __post_init__(self) -> None:
        """Require the condition of a claim that is reproduced with one."""
        if self.verdict == "reproduced with a condition" and not self.why:
            raise ValueError(f"{self.what}: which condition?")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment comes to; its notes are what a reader should know of it."""

    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of a paper, to be run again."""

    name: str
    paper: str  # authors, year, and the figure or table
    title: str  # one line on what is shown
    data: tuple[str, ...]  # names of data sets that must be in the data folder
    run: Callable[[PaperData], Outcome]  # the same every time
    method: str = ""  # how it is done, and what is assumed beyond the paper, in 1 to 3 sentences


@dataclass(frozen=True, eq=False)
class Reproduction:
    """An experiment that was run, or was not, and why."""

    name: str
    paper: str
    title: str
    outcome: Outcome
    failed: str = ""  # why it could not be run
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of those read, by path
    method: str = ""  # how it was done, and what was assumed beyond the paper

    @property
    def is_untried(self) -> bool:
        """Whether none of its claims could be tried, such as where its data cannot be had."""
        claims = self.outcome.claims
        return not self.failed and bool(claims) and all(c.verdict == "not run" for c in claims)


@dataclass(frozen=True)
class Place:
    """Where something of a paper stands that no experiment shows."""

    what: str
    paper: str
    where: str


@dataclass(frozen=True)
class Reference:
    """A text in full; the year is empty where it states none."""

    authors: str
    year: str
    title: str
    where: str


@dataclass(frozen=True, eq=False)
class GalleryResult:
    """What a run of several experiments gave, by paper."""

    reproductions: tuple[Reproduction, ...]
    command: str = ""  # which gives the same result
    versions: dict[str, str] = field(default_factory=dict)
    elsewhere: tuple[Place, ...] = ()  # what no experiment shows, empty where not all were run
    references: tuple[Reference, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of all data files read, by path."""
        return {k: v for one in self.reproductions for k, v in sorted(one.files.items())}

    @property
    def n_failed(self) -> int:
        """Number of experiments that could not be run."""
        return sum(bool(one.failed) for one in self.reproductions)

    def count(self, verdict: Verdict) -> int:
        """Return how many claims came out so."""
        return sum(c.verdict == verdict for one in self.reproductions for c in one.outcome.claims)
