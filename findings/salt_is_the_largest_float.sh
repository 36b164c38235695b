#!/usr/bin/env bash
# SimpleITK 2.5.7: salt and pepper on a picture of 32-bit floats, as used to test filters.
# Guess before it was run: salt is the picture's brightest value and pepper its darkest.
# Seen: in floats they are 3.4e38 and -3.4e38, the ends of the type; in bytes they are 255 and 0. A mean
# or a PSNR of the floats is infinite or NaN. Add impulses to bytes and convert afterwards.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q simpleitk==2.5.7 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import SimpleITK as sitk

ends = {}
for kind in (np.uint8, np.float32):
    image = sitk.GetImageFromArray(np.full((64, 64), 100, kind))
    salted = sitk.GetArrayFromImage(sitk.SaltAndPepperNoise(image, 0.1, 1))
    ends[kind.__name__] = float(salted.min()), float(salted.max())
print("darkest and brightest:", ends)
assert ends["uint8"] == (0, 255)
assert ends["float32"][1] > 1e38, "fixed: salt lies within the picture"
PYTHON
