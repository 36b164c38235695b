"""How complexity is measured and judged; no time is asserted."""

import numpy as np
import pytest

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import complexity

SIZES = np.array([1.0, 2.0, 4.0])


def test_peaks_are_what_numpy_allocates():
    assert complexity.peak_bytes(lambda: np.ones(50_000)) == pytest.approx(400_000, rel=0.01)
    assert complexity.peak_bytes(lambda: [np.ones(50_000).sum() for _ in range(9)]) < 450_000


@pytest.mark.release
def test_a_fit_of_all_components_holds_squares_of_the_rows_and_the_others_do_not():
    X = np.random.default_rng(0).normal(size=(1600, 10))
    ways = [way for way, _ in complexity.fits(X).values()]
    for way in ways:
        way(300)  # imports and compilation at first use are not part of a fit
    full, free, low = (
        complexity.exponent(*complexity.series_of(complexity.peak_bytes, way, (800, 1600)))
        for way in ways
    )
    assert full == pytest.approx(2.0, abs=0.1)
    assert free < 1.3 and low < 1.3


@pytest.mark.parametrize(
    ("powers", "verdicts"),
    [
        ((3.0, 1.5, 1.0, 2.0, 1.0, 1.0), ["reproduced"] * 4),
        ((1.8, 1.5, 1.0, 1.0, 1.0, 2.0), ["not reproduced"] * 2 + ["reproduced", "not reproduced"]),
    ],
)
def test_fits_are_judged_by_their_exponents(powers, verdicts):
    rows = np.array([500.0, 1000.0, 2000.0])
    curves = [(rows, rows**power) for power in powers]
    if powers[0] < 2.0:
        curves[0] = (rows, 1e6 * rows ** powers[0])
    names = ("all", "few", "low")
    seconds, memory = (dict(zip(names, part, strict=True)) for part in (curves[:3], curves[3:]))
    assert [claim.verdict for claim in complexity._judge_fits(seconds, memory)] == verdicts


def test_projections_are_judged_by_their_exponents():
    lines = dict.fromkeys(("m", "n", "p", "all", "l", "linear"), (SIZES, SIZES))
    lines |= {"m": (SIZES, 5.0 * SIZES), "all": (SIZES, SIZES**2)}

    def verdicts(changed):
        claims = complexity._judge_projections(lines | changed)
        return [claim.verdict == "reproduced" for claim in claims]

    assert verdicts({}) == [True] * 4
    for name in ("m", "n", "p"):
        assert verdicts({name: (SIZES, 5.0 * SIZES**2)})[0] is False
    assert verdicts({"all": (SIZES, SIZES)}) == [True, False, True, True]
    assert verdicts({"l": (SIZES, 1.0 / SIZES)}) == [True, True, False, True]
    assert verdicts({"linear": (SIZES, 9.0 * SIZES)}) == [True, True, True, False]


def test_a_small_run_has_a_curve_for_each_claim(monkeypatch):
    sizes = {"ROWS": (150, 300), "PROJECTED": (200, 400), "COUNTS": (10, 20)}
    sizes |= {"ATTRIBUTES": (20, 40), "ALL_OF": (100, 200)}
    for name, value in {**sizes, "ROWS_OF_LAPACK": (150, 300), "TRAINED": (500, 1000)}.items():
        monkeypatch.setattr(complexity, name, value)
    outcome = complexity.run_complexity(PaperData(None))
    assert [len(figure.series) for figure in outcome.figures] == [3, 3, 6]
    for figure in outcome.figures:
        assert figure.log_x and figure.log_y
        for x, y in figure.series.values():
            assert len(x) == len(y) == 2 and (y > 0.0).all()
    assert len(outcome.claims) == 8
