#!/usr/bin/env bash
# skrub 0.11.0: `deduplicate` of a column of eight fruits without a single misspelling.
# Guess before it was run: the column comes back as it is, since no two names are alike.
# Seen: four fruits are left. The number of clusters is the one with the best silhouette, which may be
# as small as two and is less than the number of names, so that some names are always merged. Look at
# the pairs that it would merge before writing them back.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q skrub==0.11.0 numpy==2.4.6 pandas==3.1.1 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import skrub

fruits = ["apple", "banana", "cherry", "orange", "grape", "melon", "peach", "mango"]
column = list(np.random.default_rng(0).choice(fruits, 400))
merged = list(skrub.deduplicate(column))
print("before:", sorted(set(map(str, column))))
print("after: ", sorted(set(map(str, merged))))
assert len(set(column)) == 8
assert len(set(merged)) < 8, "fixed: names without a misspelling are kept"
PYTHON
