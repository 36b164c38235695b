"""All experiments by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from kpca_apps.errors import ConfigError
from kpca_apps.papers import experiments
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.result import Outcome

__all__ = ["Experiment", "all_experiments", "chosen_experiments"]


@dataclass(frozen=True)
class Experiment:
    """One figure, table or claim of a paper, to be run again.

    Attributes
    ----------
    name : str
        As the command line knows it.
    paper : str
        Authors, year, and the figure or table.
    title : str
        One line: what is shown.
    data : tuple of str
        Names of data sets that must be in the data folder; empty where the data are drawn.
    run : callable
        From the data to the `Outcome`; the same every time.
    method : str
        One to three plain sentences: how it is done, and what is assumed beyond the paper.
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
    """Return the experiment of that name, or all of them for "all".

    Raises
    ------
    ConfigError
        If there is none of that name.
    """
    known = all_experiments()
    if name == "all":
        return list(known.values())
    if name not in known:
        raise ConfigError(f'There is no experiment "{name}"; kpca papers list names them all.')
    return [known[name]]
