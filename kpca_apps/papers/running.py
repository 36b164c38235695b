"""Running experiments one after the other; one that lacks its data does not stop the rest."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

from kpca_apps.errors import KpcaError
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.references import REFERENCES
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, GalleryResult, Outcome, Place, Reproduction

__all__ = ["gathered", "not_run", "reproduce"]

LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn")


def reproduce(experiment: Experiment, data: PaperData) -> Reproduction:
    """Run an experiment; where its data are missing, say so and how to get them.

    Parameters
    ----------
    experiment : Experiment
    data : PaperData

    Returns
    -------
    Reproduction
        With the reason in `failed` if a file is missing or the memory does not suffice.
    """
    try:
        for name in experiment.data:
            data.require(name)
        outcome = experiment.run(data)
    except KpcaError as error:
        return not_run(experiment, str(error))
    except MemoryError:
        return not_run(experiment, "the memory of this machine does not suffice.")
    return _of(experiment, outcome, files=data.digests(experiment.data))


def not_run(experiment: Experiment, why: str) -> Reproduction:
    """Return what stands for an experiment that gave nothing.

    Parameters
    ----------
    experiment : Experiment
    why : str
        A sentence.

    Examples
    --------
    >>> from kpca_apps.papers.registry import all_experiments
    >>> not_run(all_experiments()["clusters"], "interrupted.").failed
    'interrupted.'
    """
    claim = Claim(experiment.title, "", "", None, "not run", why)
    return _of(experiment, Outcome((claim,)), failed=why)


def _of(
    experiment: Experiment,
    outcome: Outcome,
    *,
    failed: str = "",
    files: dict[str, str] | None = None,
) -> Reproduction:
    """Return what is shown of an experiment beside what came of it."""
    about = (experiment.name, experiment.paper, experiment.title)
    return Reproduction(*about, outcome, failed, files or {}, experiment.method)


def gathered(
    reproductions: Iterable[Reproduction],
    *,
    command: str = "",
    elsewhere: tuple[Place, ...] = (),
) -> GalleryResult:
    """Gather what experiments gave into one result.

    Parameters
    ----------
    reproductions : iterable of Reproduction
    command : str
        The command line that gives the same result.
    elsewhere : tuple of Place
        What no experiment shows.

    Examples
    --------
    >>> from kpca_apps.papers.registry import chosen_experiments
    >>> done = [reproduce(one, PaperData(None)) for one in chosen_experiments("clusters")]
    >>> result = gathered(done)
    >>> result.count("reproduced"), result.n_failed
    (1, 0)
    """
    versions = {name: version(name) for name in LIBRARIES}
    return GalleryResult(tuple(reproductions), command, versions, elsewhere, REFERENCES)
