"""
Labels, and a comparison with baselines
=======================================

Where outliers are known, a label column is kept out of the model and used to judge it: ``label=``
names the column, ``positive=`` its value that means outlier. ``kpca novelty compare`` sets the
detector beside linear PCA, a one-class SVM, Parzen density, an isolation forest and the local
outlier factor. The same in a few lines, with scikit-learn's own estimators:
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import RocCurveDisplay
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpca_apps

rows, benign = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
train = rng.choice(np.flatnonzero(benign), 200, replace=False)
test = np.setdiff1d(np.arange(len(rows)), train)

detectors = {
    "kernel PCA": kpca_apps.KernelPCANovelty(contaminated=False, random_state=0),
    "isolation forest": IsolationForest(random_state=0),
    "local outlier factor": LocalOutlierFactor(novelty=True),
}
figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
for name, detector in detectors.items():
    pipeline = make_pipeline(StandardScaler(), detector).fit(rows[train])
    scores = pipeline.score_samples(rows[test])
    RocCurveDisplay.from_predictions(benign[test], scores, name=name, ax=axes)

# %%
# The same table as a file, with the label in a column: the whole comparison as a report.
#
# .. code-block:: sh
#
#     kpca novelty compare datasets/breast_cancer.csv --label diagnosis

result = kpca_apps.screen_table("../../datasets/breast_cancer.csv", label="diagnosis", count=20)
print(result)
