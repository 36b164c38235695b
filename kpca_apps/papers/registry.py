"""All experiments by name, and running them; one that lacks its data does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules

from kpca_apps.errors import ConfigError, KpcaError
from kpca_apps.papers import experiments
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.result import Claim, GalleryResult, Outcome, Place, Reproduction
from kpca_apps.papers.texts import REFERENCES

__all__ = [
    "Experiment",
    "all_experiments",
    "chosen_experiments",
    "gathered",
    "not_run",
    "reproduce",
]

LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of a paper, to be run again.

    `paper` is authors, year, and the figure or table; `title` one line on what is shown; `data` the
    names of data sets that must be in the data folder; `run` is the same every time; `method` says
    in one to three plain sentences how it is done, and what is assumed beyond the paper.
    """

    name: str
    paper: str
    title: str
    data: tuple[str, ...]
    run: Callable[[PaperData], Outcome]
    method: str = ""


def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by name: the modules of `kpca_apps.papers.experiments`, in order.

    Examples
    --------
    >>> all_experiments()["clusters"].paper
    'Aguilera and Antonanzas (2019), Fig. 1'
    """
    found: dict[str, Experiment] = {}
    for module in iter_modules(experiments.__path__, experiments.__name__ + "."):
        experiment: Experiment = import_module(module.name).EXPERIMENT
        found[experiment.name] = experiment
    return dict(sorted(found.items(), key=lambda pair: (pair[1].paper, pair[0])))


def chosen_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them for "all"."""
    known = all_experiments()
    if name == "all":
        return list(known.values())
    if name not in known:
        raise ConfigError(f'There is no experiment "{name}"; kpca papers list names them all.')
    return [known[name]]


def reproduce(experiment: Experiment, data: PaperData) -> Reproduction:
    """Run an experiment; where its data are missing, say so and how to get them."""
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
    """Return what stands for an experiment that gave nothing, and why in a sentence.

    Examples
    --------
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

    Examples
    --------
    >>> done = [reproduce(one, PaperData(None)) for one in chosen_experiments("clusters")]
    >>> result = gathered(done)
    >>> result.count("reproduced"), result.n_failed
    (1, 0)
    """
    versions = {name: version(name) for name in LIBRARIES}
    return GalleryResult(tuple(reproductions), command, versions, elsewhere, REFERENCES)
