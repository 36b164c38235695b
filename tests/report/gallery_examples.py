"""Hand-made experiment results with all kinds of figures and verdicts; some hold scripts."""

import numpy as np

from kpca_apps.papers.figures import Contours, Curves, Pictures, Scatter, Table
from kpca_apps.papers.result import Claim, GalleryResult, Outcome, Place, Reference, Reproduction
from tests.report.examples import HOSTILE

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(40, 2))
GROUPS = np.repeat(np.arange(2), 20)
SIDE = np.linspace(-2.0, 2.0, 21)


def slope(threshold: float | None = None) -> Contours:
    """Return two contour panels: one of the first coordinate, and one without values."""
    values = np.stack([np.tile(SIDE, (21, 1)), np.full((21, 21), np.nan)])
    return Contours("A slope", SIDE, SIDE, values, POINTS, GROUPS, ("x", "none"), threshold)


def spots() -> Pictures:
    images = np.linspace(0.0, 1.0, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)
    return Pictures("Spots", images, ("noisy", "clean"), ("0", "1", "2"))


def lines() -> Curves:
    counts = np.array([1.0, 2.0, 4.0])
    series = {"ours": (counts, np.array([3.0, np.nan, 1.0])), "theirs": (counts, counts)}
    return Curves("Errors", "components", "error", series, log_x=True)


def close_to(what: str, condition: str = "", source: str = "") -> Claim:
    verdict = "reproduced with a condition" if condition else "reproduced"
    return Claim(what, 1.0, 1.0, 0.1, verdict, condition, source)


def everything() -> Outcome:
    claims = (
        Claim("an error", 0.038, 0.0381, 0.005, "reproduced", source="1998 journal"),
        close_to("another", "with images smoothed"),
        Claim("a shape", "a sine", "a line", None, "not reproduced", "the kernel is nearly linear"),
        Claim("a table", "2.2 %", "", None, "not run", "the images cannot be had"),
    )
    axes = np.array([[1.0, 0.0]])
    figures = (slope(), Scatter("Rows", "x", "y", POINTS, GROUPS, axes), lines(), spots())
    table = Table("Errors", ("kernel", "paper", "ours"), (("linear", "0.038", "0.0381"),))
    return Outcome(claims, figures, (table,), ("A note.",))


def usual() -> GalleryResult:
    one = Reproduction("first", "Author (2001), Fig. 1", "Everything", everything())
    claims = Outcome((Claim("a number", 1.0, 1.0, 0.0, "reproduced"),), (lines(),))
    two = Reproduction("second", "Author (2001), Fig. 2", "A curve", claims, files={"a/b": "ab12"})
    three = Reproduction("third", "Another (2002), Table 1", "Lost", Outcome(()), "needs a/c")
    elsewhere = (Place("Faces", "Author (2001), 7", "no command"),)
    command = "kpca papers run all --force"
    texts = (Reference("A. Author", "2001", "On everything", "A journal"),)
    return GalleryResult((one, two, three), command, {"numpy": "2.0"}, elsewhere, texts)


def hostile() -> GalleryResult:
    claims = (Claim(HOSTILE, HOSTILE, HOSTILE, None, "not reproduced", HOSTILE),)
    scatter = Scatter(HOSTILE, HOSTILE, HOSTILE, POINTS, GROUPS)
    outcome = Outcome(claims, (scatter,), (Table(HOSTILE, (HOSTILE,), ((HOSTILE,),)),), (HOSTILE,))
    return GalleryResult((Reproduction("bad", HOSTILE, HOSTILE, outcome),), HOSTILE)
