#!/usr/bin/env bash
# hdbscan 0.8.44: outlier_scores_ (GLOSH) of fifty equal rows and one far from them.
# Guess before it was run: the far row has the highest score, and no score is NaN.
# Seen: the far row alone is NaN, the equal ones are 0; the highest score by nanargmax is a usual
# row. The density of equal rows is infinite, and infinity less infinity is divided by infinity.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q hdbscan==0.8.44 numpy==2.4.6 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import hdbscan
import numpy as np

rows = np.r_[np.zeros((50, 2)), [[9.0, 9.0]]]
scores = hdbscan.HDBSCAN(min_cluster_size=5).fit(rows).outlier_scores_
print(scores[-3:], np.nanargmax(scores))
assert np.isnan(scores[-1]) and (scores[:-1] == 0).all(), "fixed: the far row has the highest score"
PYTHON
