#!/usr/bin/env bash
# cleanlab 2.9.0: outliers by `Datalab.find_issues(features=...)`, five rows twenty times as far as all others.
# Guess before it was run: the five rows are found, in two columns and in ten.
# Seen: in two columns all five are found; in ten none is. With more than three columns the distance
# between neighbours is the cosine's, to which a row's length is nothing. Standardised tables have their
# outliers at great length: give it a graph of Euclidean neighbours (`knn_graph`).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q 'cleanlab[datalab]==2.9.0' datasets==5.2.0 scikit-learn==1.9.1 numpy==2.4.6 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from cleanlab import Datalab

found = {}
for columns in (2, 10):
    rows = np.random.default_rng(0).normal(size=(500, columns))
    rows[:5] *= 20
    lab = Datalab({"row": list(range(500))}, verbosity=0)
    lab.find_issues(features=rows, issue_types={"outlier": {}})
    found[columns] = int(lab.get_issues("outlier")["is_outlier_issue"][:5].sum())
print("of five far rows found, by columns:", found)
assert found[2] >= 4
assert found[10] <= 1, "fixed: far rows are found in ten columns too"
PYTHON
