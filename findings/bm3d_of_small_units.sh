#!/usr/bin/env bash
# bm3d 4.0.3: the same noisy picture and noise level, both in other units, or both on an offset.
# Guess before it was run: the result follows the units and the offset; single precision costs at
# most a thousandth of the noise.
# Seen: at 1e-5 of a picture in 0 to 1 (reflectances, fluxes, metres) nothing is denoised: the error stays
# as large as the noise, and nothing is said. At 1e-4 it is a third larger than it should be. On an
# offset of 100,000 (raw counts over a bias) the result is worse than its noisy input.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q bm3d==4.0.3 scikit-image==0.26.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from bm3d import bm3d
from skimage.data import camera

clean = camera()[100:228, 100:228] / 255
noise = 0.1
noisy = clean + np.random.default_rng(0).normal(0, noise, clean.shape)


def error(denoised):
    return round(float(np.sqrt(np.mean((denoised - clean) ** 2))), 4)


units = {unit: error(bm3d(noisy * unit, noise * unit) / unit) for unit in (1e6, 1, 1e-4, 1e-5)}
offsets = {offset: error(bm3d(noisy + offset, noise) - offset) for offset in (0, 1e4, 1e5)}
print("error by unit:", units)
print("error by offset:", offsets)
assert units[1e6] == units[1] < 0.03, "changed: the error at usual units"
assert units[1e-5] > noise, "fixed: small units are denoised"
assert offsets[1e5] > noise, "fixed: an offset costs nothing"
PYTHON
