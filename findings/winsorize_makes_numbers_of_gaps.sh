#!/usr/bin/env bash
# scipy 1.17.1: scipy.stats.mstats.winsorize(limits=.1) of a column with a gap.
# Guess before it was run: NaN stays, the largest tenth of the numbers is cut.
# Seen: NaN counts as the largest value and is replaced by a usual one (18 of 0 to 19), so a gap
# becomes a measurement, and one large value fewer is cut. nan_policy="omit" keeps the gap.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.stats.mstats import winsorize

column = np.arange(20.0)
column[5] = np.nan
cut = np.asarray(winsorize(column, limits=0.1))
print(cut)
assert not np.isnan(cut).any() and cut[5] == 18, "fixed: the gap stays"
assert np.isnan(np.asarray(winsorize(column, limits=0.1, nan_policy="omit"))[5])
PYTHON
