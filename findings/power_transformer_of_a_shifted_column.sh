#!/usr/bin/env bash
# scikit-learn 1.9.1: PowerTransformer (Yeo-Johnson, standardised) of a skewed column far from zero,
# 1,000 plus log-normal values.
# Guess before it was run: a column of deviation one, at worst with a poor exponent.
# Seen: all values are about 1e-15: the exponent runs so low that the transformed values agree to the
# last digits, their deviation is then taken for zero and not divided by. No warning; the same column
# less 1,000 comes out with deviation one. A detector sees a constant column.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
from sklearn.preprocessing import PowerTransformer

warnings.simplefilter("error")
column = np.random.default_rng(0).lognormal(size=(500, 1))
near, far = PowerTransformer().fit(column), PowerTransformer().fit(column + 1000)
print("at zero:", near.transform(column).std(), "exponent", near.lambdas_)
print("at 1,000:", far.transform(column + 1000).std(), "exponent", far.lambdas_)
assert abs(near.transform(column).std() - 1) < 0.01
assert far.transform(column + 1000).std() < 1e-6, "fixed: deviation one"
PYTHON
