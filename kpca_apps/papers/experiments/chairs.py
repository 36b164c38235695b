"""The MPI chairs, Table 1 and Fig. 3: 25 chairs, 16 x 16 pixels; the images cannot be had."""

from __future__ import annotations

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Table
from kpca_apps.papers.result import Claim, Outcome

# Test error in per cent by number of components, for degrees 1 to 7.
PAPER = {
    64: ("23.0", "21.0", "17.6", "16.8", "16.5", "16.7", "16.6"),
    128: ("17.6", "9.9", "7.9", "7.1", "6.2", "6.0", "5.8"),
    256: ("16.8", "6.0", "4.4", "3.8", "3.4", "3.2", "3.3"),
    512: ("n.a.", "4.4", "3.6", "3.9", "2.8", "2.8", "2.6"),
    1024: ("n.a.", "4.1", "3.0", "2.8", "2.6", "2.6", "2.4"),
    2048: ("n.a.", "4.1", "2.9", "2.6", "2.5", "2.4", "2.2"),
}


def run(data: PaperData) -> Outcome:
    """Return the paper's table and why there is no other."""
    claim = Claim(
        "test error by degree and number of components",
        "2.2 % at best, 16.8 % for linear components",
        "",
        None,
        "not run",
        "the images cannot be had: the ftp server that the report names could not be reached, "
        "and no copy was found; the experiment usps does the same on digits",
    )
    heads = ("components", *(f"degree {d}" for d in range(1, 8)))
    rows = tuple((str(count), *cells) for count, cells in PAPER.items())
    return Outcome((claim,), (), (Table("Test error, per cent: the paper's", heads, rows),))
