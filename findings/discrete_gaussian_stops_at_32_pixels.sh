#!/usr/bin/env bash
# SimpleITK 2.5.7: DiscreteGaussian with the variance of a wide blur, to subtract a background.
# Guess before it was run: the blur has the deviation that was asked for within 2 %.
# Seen: 15.8 pixels where 20 were asked for. The kernel is cut off at maximumKernelWidth, 32 pixels by
# default, so that no blur is wider than some 17; SmoothingRecursiveGaussian gives 19.7. A background
# found so keeps more of the picture, and what is subtracted takes faint wide objects with it. With a
# deviation of 30 every pixel comes back as NaN, without an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q simpleitk==2.5.7 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import numpy as np
import SimpleITK as sitk

point = np.zeros((201, 201), np.float32)
point[100, 100] = 1
place = np.arange(201) - 100


def width(blurred):
    profile = sitk.GetArrayFromImage(blurred).sum(axis=0)
    return round(float(np.sqrt((profile * place**2).sum() / profile.sum())), 1)


image = sitk.GetImageFromArray(point)
for sigma in (5, 10, 20, 30):
    found = width(sitk.DiscreteGaussian(image, sigma**2)), width(
        sitk.SmoothingRecursiveGaussian(image, sigma)
    )
    print(f"asked for {sigma}: DiscreteGaussian {found[0]}, SmoothingRecursiveGaussian {found[1]}")
assert np.isnan(width(sitk.DiscreteGaussian(image, 900))), "fixed: a wide kernel gives numbers"
assert width(sitk.DiscreteGaussian(image, 400)) < 17, "fixed: the kernel is as wide as its variance"
PYTHON
