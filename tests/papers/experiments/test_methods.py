"""The papers' methods and the recommended alternatives: known figures are reproduced."""

import numpy as np
import pytest

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import methods
from kpca_apps.papers.figures import Curves

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def outcome():
    return methods.run_methods(PaperData(None))


def test_what_the_papers_suggest_works(outcome):
    assert all(claim.verdict.startswith("reproduced") for claim in outcome.claims)
    assert {claim.source for claim in outcome.claims} == {
        "1996 report",
        "Aguilera and Antonanzas, 2019, VII",
    }


def test_what_to_prefer_is_at_least_as_good(outcome):
    """In every table row, the recommended alternative is at least as good as the paper's method."""
    lines = {row[0]: row for table in outcome.tables for row in table.rows if len(row) == 5}
    assert len(lines) == 18
    for name, (_, own, prefer, other, costs) in lines.items():
        assert prefer and " / " in costs
        if name.startswith(("kernel k-means", "the same, to its end")):
            assert float(other) >= float(own)  # the figure is the fraction of correct rows
        else:
            assert float(other) <= float(own), name


def test_errors_fall_with_what_is_spent(outcome):
    curves = [figure for figure in outcome.figures if isinstance(figure, Curves)]
    assert [len(curve.series) for curve in curves] == [4, 1]
    for curve in curves:
        for _, values in curve.series.values():
            assert values[-1] < values[0] and np.isfinite(values).all()
