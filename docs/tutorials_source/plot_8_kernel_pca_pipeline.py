"""
KernelPCA in a pipeline
=======================

:class:`kpca_apps.KernelPCA` is a transformer in scikit-learn's manner: it can be searched, put into
pipelines, and fitted through landmarks where rows are many.
"""

# sphinx_gallery_thumbnail_path = '../reports/papers.png'
import time

import numpy as np
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from kpca_apps import KernelPCA

rows, labels = make_circles(400, factor=0.5, noise=0.1, random_state=0)
pipeline = Pipeline(
    [("kpca", KernelPCA(n_components=4, kernel="rbf")), ("classifier", LogisticRegression())]
)
search = GridSearchCV(
    pipeline, {"kpca__gamma": [0.1, 1.0, 10.0], "kpca__n_components": [2, 4, 8]}, cv=5
)
search.fit(rows, labels)
print(search.best_params_, f"{search.best_score_:.3f}")
search.best_estimator_

# %%
# Many rows: through landmarks (Nyström). The model chooses by the number of rows and says what it
# chose.

many = np.random.default_rng(0).normal(size=(50_000, 10))
began = time.perf_counter()
model = KernelPCA(20, kernel="rbf", gamma=0.05, n_landmarks=300, method="nystroem", random_state=0)
model.fit(many)
print(f"{time.perf_counter() - began:.1f} s: {model.plan_.describe()}")
