"""Errors on digits the way the USPS experiment has them, by scikit-learn alone."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.svm import LinearSVC


def errors_by_scikit_learn(degree, digits, counts, fitted_rows) -> list[float]:
    """Test errors in per cent; NaN for more components than there are."""
    most = fitted_rows - 1
    model = KernelPCA(
        min(max(counts), most), kernel="poly", degree=degree, gamma=1.0 / 256.0, coef0=0.0,
        eigen_solver="dense",
    ).fit(digits.train[:fitted_rows])  # fmt: skip
    train, test = model.transform(digits.train), model.transform(digits.test)
    scale = np.sqrt((train**2).sum(axis=1).mean())
    found = []
    for count in counts:
        if count > train.shape[1]:
            found.append(float("nan"))
            continue
        machine = LinearSVC(C=10.0, dual=False).fit(train[:, :count] / scale, digits.labels)
        found.append(
            100.0 * float(np.mean(machine.predict(test[:, :count] / scale) != digits.truth))
        )
    return found
