"""The texts whose experiments are run again, in full."""

from __future__ import annotations

from kpca_apps.papers.result import Reference

__all__ = ["REFERENCES"]

_TITLE_OF_1996 = "Nonlinear component analysis as a kernel eigenvalue problem"

REFERENCES: tuple[Reference, ...] = (
    Reference(
        "B. Scholkopf, A. Smola and K.-R. Muller",
        "1996",
        _TITLE_OF_1996,
        "Max-Planck-Institut fur biologische Kybernetik, technical report 44",
    ),
    Reference(
        "B. Scholkopf, A. Smola and K.-R. Muller",
        "1998",
        _TITLE_OF_1996,
        "Neural Computation 10, 1299-1319; the journal version of the report",
    ),
    Reference(
        "S. Mika, B. Scholkopf, A. Smola, K.-R. Muller, M. Scholz and G. Ratsch",
        "1998",
        "Kernel PCA and de-noising in feature spaces",
        "Advances in Neural Information Processing Systems 11, 536-542",
    ),
    Reference(
        "H. Hoffmann",
        "2007",
        "Kernel PCA for novelty detection",
        "Pattern Recognition 40, 863-874",
    ),
    Reference(
        "C. Aguilera and J. Antonanzas",
        "2019",
        "On kernel principal component analysis",
        "Technical University of Catalonia, Data Science and Engineering; dated 29 November 2019",
    ),
    Reference(
        "World Heritage Encyclopedia",
        "",
        "Kernel PCA",
        "Article WHEBN0011336923; it states no year",
    ),
    Reference(
        "Course notes, in English",
        "",
        "Section 2: Kernel PCA",
        "They state no author, title or year",
    ),
    Reference(
        "Course notes, in Spanish",
        "",
        "Kernel PCA",
        "Slides; they state no author or year",
    ),
)
"""Authors and titles as the texts state them, in plain letters."""
