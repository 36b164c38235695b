"""The texts whose experiments are run again, and where what no experiment shows stands."""

from __future__ import annotations

from kpca_apps.papers.result import Place, Reference

_TITLE_OF_1996 = "Nonlinear component analysis as a kernel eigenvalue problem"

# Authors and titles as the texts state them, in plain letters.
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
        "Pattern Recognition 40, 863-874; read in the author's preprint of the accepted text",
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
    Reference("Course notes, in Spanish", "", "Kernel PCA", "Slides; they state no author or year"),
)
_REPORT = "Scholkopf, Smola and Muller (1996)"
_STUDY = "Aguilera and Antonanzas (2019)"

# Where this toolkit has what the papers describe and no experiment shows, or why it has it not.
ELSEWHERE: tuple[Place, ...] = (
    Place("Novelty detection", f"{_STUDY}, VIII", "kpca novelty screen, fit and score"),
    Place("Its baselines", f"{_STUDY}, VIII", "kpca novelty compare"),
    Place("De-noising of images", f"{_STUDY}, V", "kpca denoise fit, and run with its model"),
    Place(
        "Components, projections, reconstruction errors, pre-images",
        "all",
        "KernelPCA, in kpca_apps.engine",
    ),
    Place("Reduced sets of fewer points", f"{_REPORT}, 4.4 and 4.5", "KernelPCA.compress"),
    Place(
        "The basic idea, contour lines of a nonlinear component",
        f"{_REPORT}, Fig. 1",
        "a drawing without numbers; the figure of the experiment parabola shows such lines",
    ),
    Place(
        "Other classifiers of USPS digits: 5.0, 4.0, 3.2 and 2.6 % errors",
        f"{_REPORT}, 6.3",
        "not run: quoted there from other papers, on networks, nonlinear and virtual support "
        "vector machines, and tangent distances",
    ),
    Place(
        "Hebbian networks, autoassociative networks, principal curves",
        f"{_STUDY}, VIII",
        "the kernel Hebbian algorithm of the experiment methods is, with the linear kernel, the "
        "network of Oja and Sanger; an autoassociative network is scikit-learn's MLPRegressor "
        "fitted to its own input; principal curves are not here",
    ),
    Place(
        "Indexing and retrieval of images, faces",
        f"{_REPORT}, 7.3",
        "no command: scikit-learn's NearestNeighbors on KernelPCA.transform",
    ),
    Place(
        "Density estimation, statistics of natural images, 3-D faces, road traffic",
        f"{_REPORT}, 8; {_STUDY}, X",
        "nothing of their own: with no component at all the reconstruction error is a Parzen "
        "density, and the rest are uses of KernelPCA",
    ),
)
