#!/usr/bin/env bash
# scikit-image 0.26.0: estimate_sigma and denoise_nl_means on the same 8-bit picture.
# Guess before it was run: both use the picture's units, or the second refuses a sigma of 20.
# Seen: estimate_sigma answers in the picture's units (about 20 of 255), denoise_nl_means makes floats
# from 0 to 1 of the picture and takes sigma and h as they are. Every patch then looks alike, and
# without a warning the result is a plain mean over the search window, PSNR 23.7 where a
# picture converted to floats before both gets 33.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-image==0.26.0 PyWavelets pooch
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.ndimage import uniform_filter
from skimage import data, metrics, restoration, util

clean = data.camera()[:256, :256]
noisy = np.clip(clean + np.random.default_rng(0).normal(0, 20, clean.shape), 0, 255).astype(np.uint8)


def denoised(picture):
    sigma = restoration.estimate_sigma(picture)
    settings = {"patch_size": 5, "patch_distance": 6, "fast_mode": True}
    result = restoration.denoise_nl_means(picture, sigma=sigma, h=0.8 * sigma, **settings)
    quality = metrics.peak_signal_noise_ratio(clean / 255, result)
    print(f"{picture.dtype}: sigma {sigma:.3f}, PSNR {quality:.1f}")
    return result, quality


bytes_, of_bytes = denoised(noisy)
_, of_floats = denoised(util.img_as_float(noisy))
inside = np.s_[20:-20, 20:-20]
apart = np.abs(bytes_ - uniform_filter(noisy / 255, 13))[inside].max()
print(f"farthest from a plain mean of 13 x 13 pixels: {apart:.4f}")
assert of_floats > of_bytes + 3, "fixed: sigma is in the picture's units"
PYTHON
