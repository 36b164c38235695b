#!/usr/bin/env bash
# pyod 3.6.7, its own kernel PCA with its defaults: 199 normal rows and one row far from all others.
# Guess before it was run: the far row has the highest score, as it has with PCA, KNN and an isolation forest.
# Seen: 169 of 199 normal rows score higher. All components that are not zero are kept, so the far row has
# a component of its own, and no error of it remains. Ten components rank it first, fifty rank it last.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyod==3.6.7 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from pyod.models.iforest import IForest
from pyod.models.kpca import KPCA
from pyod.models.pca import PCA

rows = np.random.default_rng(0).normal(0, 1, (200, 3))
rows[0] = 9
detectors = {
    "PCA": PCA(),
    "isolation forest": IForest(random_state=0),
    "KPCA": KPCA(),
    "KPCA, 10 components": KPCA(n_components=10),
    "KPCA, 50 components": KPCA(n_components=50),
}
higher = {}
for name, detector in detectors.items():
    scores = detector.fit(rows).decision_scores_
    higher[name] = int(np.sum(scores > scores[0]))
print("normal rows that score above the far one:", higher)
assert higher["PCA"] == higher["isolation forest"] == higher["KPCA, 10 components"] == 0
assert higher["KPCA"] > 100, "fixed: the default finds the far row"
assert higher["KPCA, 50 components"] == 199, "fixed: 50 components find the far row"
PYTHON
