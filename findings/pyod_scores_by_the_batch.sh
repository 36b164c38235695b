#!/usr/bin/env bash
# pyod 3.6.7: COPOD and ECOD, fitted once, score the same new row alone and among 99 others.
# Guess before it was run: the same score; of 20 detectors tried none depends on what it is scored
# with.
# Seen: they do: tails are those of training rows and new rows together, so a row far out scores 18.0
# (ECOD) alone and 8.2 among others that lie out there with it, where the threshold is 7.4. A day on
# which all rows go wrong hides itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyod==3.6.7 numba
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from pyod.models.copod import COPOD
from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest

rng = np.random.default_rng(0)
X, day = rng.normal(size=(500, 3)), rng.normal(4, 1, size=(100, 3))
for kind in (COPOD, ECOD, IForest):
    model = kind().fit(X)
    alone = float(model.decision_function(day[:1])[0])
    among = float(model.decision_function(day)[0])
    print(f"{kind.__name__}: alone {alone:.2f}, among others {among:.2f}, threshold {model.threshold_:.2f}")
    if kind is IForest:
        assert np.isclose(alone, among)
    else:
        assert among < 0.8 * alone, "fixed: a score is of its row alone"
PYTHON
