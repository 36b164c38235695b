#!/usr/bin/env bash
# scikit-image 0.26.0: restoration.denoise_bilateral with sigma_color given, one hot pixel in the picture.
# Guess before it was run: the hot pixel changes its own window only.
# Seen: it changes the whole picture. The weights of colour differences come from a table of `bins`
# (10,000) entries that reaches up to the brightest pixel. Beside a hot pixel of ten thousand times the
# signal all usual differences share one entry, so that the filter blurs edges as a Gaussian does: a
# step of 60 shrinks to 4.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-image==0.26.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from skimage.restoration import denoise_bilateral

clean = np.full((60, 60), 100.0)
clean[:, 30:] += 60
noisy = clean + np.random.default_rng(0).normal(0, 5, clean.shape)
steps = {}
for hot in (0, 1e4, 1e5, 1e6):
    picture = noisy.copy()
    picture[5, 5] += hot
    far = denoise_bilateral(picture, sigma_color=8, sigma_spatial=2)[20:]
    steps[hot] = round(float(far[:, 30].mean() - far[:, 29].mean()), 1)
print("step across the edge, 15 rows from the hot pixel:", steps)
assert steps[0] > 59 and steps[1e6] < 10, "fixed: a hot pixel acts in its window only"
PYTHON
