"""Find experiments by name and run them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version

from kpca_apps.errors import ConfigError, KpcaError
from kpca_apps.names import one_line, suggest
from kpca_apps.papers import experiments
from kpca_apps.papers.data import FILES, PaperData
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
    """Return the experiments of ``tables/experiments.csv`` by name."""
    by_name = {}
    for row in read_table("experiments"):
        name, data = row["name"], tuple(row["data"].split())
        module = vars(import_module(f"{experiments.__name__}.{row['module']}"))
        method = row["method"].format_map(module)  # fill in constants of the module
        run = module[f"run_{name.replace('-', '_')}"]
        by_name[name] = Experiment(name, row["paper"], row["title"], data, run, method)
    return by_name


def chosen_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name as a list, or all experiments for "all"."""
    known = all_experiments()
    if name == "all":
        return list(known.values())
    if name not in known:
        hint = suggest(name, ("all", *known))
        raise ConfigError(
            f'There is no experiment "{one_line(name)}".{hint} For the names, run: kpca papers list'
        )
    return [known[name]]


def reproduce(experiment: Experiment, data: PaperData) -> Reproduction:
    """Run an experiment and return its result."""
    try:
        for name in experiment.data:
            data.require(name)
        outcome = experiment.run(data)
    except KpcaError as error:
        return not_run(experiment, str(error))
    except MemoryError:
        return not_run(experiment, "the memory of this machine does not suffice.")
    files = {file.path: file.sha256 for name in experiment.data for file in FILES[name]}
    return Reproduction(*experiment.heading, outcome, files=files, method=experiment.method)


def not_run(experiment: Experiment, why: str) -> Reproduction:
    """Return the result of an experiment that did not run."""
    failed = Outcome((Claim(experiment.title, "", "", None, "not run", why),))
    return Reproduction(*experiment.heading, failed, failed=why, method=experiment.method)


def gathered(
    reproductions: Iterable[Reproduction], *, command: str = "", elsewhere: tuple[Place, ...] = ()
) -> GalleryResult:
    """Combine the results of experiments into one."""
    versions = {name: version(name) for name in LIBRARIES}
    return GalleryResult(tuple(reproductions), command, versions, elsewhere, REFERENCES)
