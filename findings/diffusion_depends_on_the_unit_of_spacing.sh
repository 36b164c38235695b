#!/usr/bin/env bash
# SimpleITK 2.5.7: CurvatureAnisotropicDiffusion of one picture whose spacing is told in two units.
# Guess before it was run: the spacing does not matter, since all pixels are square.
# Seen: noise of 10 is smoothed to 2.4 with the spacing 1 (micrometres) and to 6.7 with the spacing 10
# (the same in tenths of a micrometre). The filter divides differences by the spacing, and SimpleITK
# has no switch for it: the unit that a file happens to use decides how much noise is left.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q simpleitk==2.5.7 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import SimpleITK as sitk

noise = np.random.default_rng(0).normal(100, 10, (128, 128)).astype(np.float32)
left = {}
for spacing in (1.0, 10.0):
    image = sitk.GetImageFromArray(noise)
    image.SetSpacing((spacing, spacing))
    smoothed = sitk.CurvatureAnisotropicDiffusion(image, 0.0625, 9.0, 1, 10)
    left[spacing] = round(float(sitk.GetArrayFromImage(smoothed).std()), 1)
print("noise left, of 10:", left)
assert left[10.0] > 2 * left[1.0], "fixed: the result does not depend on the unit of the spacing"
PYTHON
