#!/usr/bin/env bash
# scipy 1.17.1: scipy.ndimage.median_filter of a picture in which one pixel is NaN.
# Guess before it was run: every window that holds the NaN comes out as NaN, all others are right.
# Seen: on a ramp no pixel comes out as NaN and six of the nine around it are wrong by up to 9; on
# noise one of the nine is NaN. Comparisons with NaN are false, so a sort puts it anywhere.
# generic_filter with numpy.median gives NaN in all nine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.ndimage import generic_filter, median_filter

ramp = np.arange(49.0).reshape(7, 7)
holed = ramp.copy()
holed[3, 3] = np.nan
found, right = median_filter(holed, 3), median_filter(ramp, 3)
print(found[2:5, 2:5], right[2:5, 2:5], sep="\n")
assert np.isnan(generic_filter(holed, np.median, 3)).sum() == 9
assert not np.isnan(found).any(), "fixed: NaN where a window holds one"
assert (found != right).sum() == 6
PYTHON
