"""All experiments by name, and running them; one that lacks its data does not stop the rest."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any

from kpca_apps.errors import ConfigError, KpcaError
from kpca_apps.names import one_line, suggest
from kpca_apps.papers import experiments
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.result import (
    Claim,
    Experiment,
    GalleryResult,
    Outcome,
    Place,
    Reference,
    Reproduction,
)
from kpca_apps.papers.tables import read_table

LIBRARIES = ("kpca-apps", "numpy", "scipy", "scikit-learn")

REFERENCES = tuple(Reference(**row) for row in read_table("references"))
ELSEWHERE = tuple(Place(**row) for row in read_table("elsewhere"))


def all_experiments() -> dict[str, Experiment]:
    """Return the experiments of ``tables/experiments.csv`` by name; each is a function, `run_`."""
    found = {}
    for row in read_table("experiments"):
        name, data = row["name"], tuple(row["data"].split())
        module = vars(import_module(f"{experiments.__name__}.{row['module']}"))
        method = row["method"].format_map(module)  # names its constants
        run = module[f"run_{name.replace('-', '_')}"]
        found[name] = Experiment(name, row["paper"], row["title"], data, run, method)
    return found


def chosen_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them for "all"."""
    known = all_experiments()
    if name == "all":
        return list(known.values())
    if name not in known:
        meant = suggest(name, ("all", *known))
        raise ConfigError(
            f'There is no experiment "{one_line(name)}".{meant} kpca papers list names them all.'
        )
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
    """Return what stands for an experiment that gave nothing, and why in a sentence."""
    claim = Claim(experiment.title, "", "", None, "not run", why)
    return _of(experiment, Outcome((claim,)), failed=why)


def _of(one: Experiment, outcome: Outcome, **more: Any) -> Reproduction:
    return Reproduction(one.name, one.paper, one.title, outcome, method=one.method, **more)


def gathered(
    reproductions: Iterable[Reproduction], *, command: str = "", elsewhere: tuple[Place, ...] = ()
) -> GalleryResult:
    """Gather what experiments gave into one result."""
    versions = {name: version(name) for name in LIBRARIES}
    return GalleryResult(tuple(reproductions), command, versions, elsewhere, REFERENCES)
