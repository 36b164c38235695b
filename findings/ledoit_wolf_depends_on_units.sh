#!/usr/bin/env bash
# scikit-learn 1.9.1: Mahalanobis distances by `LedoitWolf`, half of the columns once in metres, once in millimetres.
# Guess before it was run: the rows keep their order, as Mahalanobis distances have no units.
# Seen: the rank correlation of the two orders is .74. The covariance is shrunk towards one variance for all
# columns, their mean, which the columns with the largest numbers decide. Standardise first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf

random = np.random.default_rng(0)
metres = random.normal(size=(60, 20)) @ random.normal(size=(20, 20))
metres[0] += 4
units = np.r_[np.ones(10), np.full(10, 1000.0)]
distances = [LedoitWolf().fit(rows).mahalanobis(rows) for rows in (metres, metres * units)]
rank = float(spearmanr(*distances).statistic)
print("rank correlation:", round(rank, 2))
assert rank < 0.95, "fixed: the order does not depend on the units"
PYTHON
