#!/usr/bin/env bash
# scikit-image 0.26.0: denoise_wavelet of a picture of one value, as a dark frame or an empty plane of
# a stack is.
# Guess before it was run: the same picture comes back, as from denoise_tv_chambolle and
# denoise_nl_means.
# Seen: every pixel is NaN. The noise is estimated as zero, and the shrinkage divides by it; a warning
# of NumPy is all that is said.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-image==0.26.0 PyWavelets==1.9.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle, denoise_wavelet

flat = np.full((32, 32), 7.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = denoise_wavelet(flat)
print("denoise_wavelet:", np.unique(result), [str(w.message) for w in caught])
for other in (denoise_tv_chambolle, denoise_nl_means):
    print(other.__name__, np.unique(other(flat)))
    assert (other(flat) == 7).all()
assert np.isnan(result).all(), "fixed: a flat picture stays"
PYTHON
