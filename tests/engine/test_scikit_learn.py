"""Run scikit-learn's KernelPCA tests on ours; each deliberate difference is named.

The tests come from the installed scikit-learn (BSD-3). Its solver options are translated; tests of
options that we do not have are skipped.
"""

import importlib
import inspect
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import kpca_apps

UPSTREAM: Any = importlib.import_module("sklearn.decomposition.tests.test_kernel_pca")
SOLVERS = {"auto": "auto", "dense": "lapack", "arpack": "krylov", "randomized": "krylov"}
NO_ZEROS = "components without variance are dropped, not kept as zeros"
NO_FLAG = "inverse_transform needs no fit_inverse_transform: pre-images are computed on demand"
DIFFERENCES = {
    "test_kernel_conditioning": NO_ZEROS,
    "test_remove_zero_eig": NO_ZEROS,
    "test_kernel_pca_invalid_parameters": NO_FLAG,
    "test_kernel_pca_raise_not_fitted_error": NO_FLAG,
    "test_kernel_pca_sparse": NO_FLAG,
    "test_kernel_pca_inverse_correct_gamma": "the gamma used is kernel_.gamma, not gamma_",
    "test_precomputed_kernel_not_psd": "an indefinite Gram matrix is used as an indefinite kernel "
    "is, with its negative eigenvalues, and rejected for errors or pre-images",
}


class KernelPCA(kpca_apps.KernelPCA):
    """Our KernelPCA with scikit-learn's options."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: Any = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            alpha=alpha,
            preimage="ridge",
            solver=SOLVERS.get(eigen_solver, eigen_solver),  # type: ignore[arg-type]
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig

    @property
    def eigenvectors_(self) -> Any:
        return self.subspace_.weights * np.sqrt(self.eigenvalues_)


def cases() -> list[Any]:
    """Return each scikit-learn test with each of its parameter sets."""
    found = []
    for name, function in inspect.getmembers(UPSTREAM, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
        axes = []
        for mark in marks:
            names, values = [word.strip() for word in mark.args[0].split(",")], mark.args[1]
            rows = [value if len(names) > 1 else [value] for value in values]
            axes.append([dict(zip(names, row, strict=True)) for row in rows])
        for chosen in itertools.product(*axes):
            given: dict[str, Any] = {key: value for item in chosen for key, value in item.items()}
            if "global_random_seed" in inspect.signature(function).parameters:
                given["global_random_seed"] = 0
            found.append(pytest.param(name, given, id=f"{name}-{len(found)}"))
    return found


@pytest.mark.parametrize(("name", "given"), cases())
def test_as_scikit_learn(name: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UPSTREAM, "KernelPCA", KernelPCA)
    if name in DIFFERENCES:
        pytest.xfail(DIFFERENCES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(UPSTREAM, name)(**given)
