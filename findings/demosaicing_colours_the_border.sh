#!/usr/bin/env bash
# colour-demosaicing 0.2.7: a frame of one colour, sampled in the Bayer pattern and interpolated again.
# Guess before it was run: one colour comes back everywhere, since there is nothing to interpolate.
# Seen: inside, all three methods are exact. At the border, bilinear interpolation is off by up to 1.0 (the whole
# range) and Malvar's filter by .41; Menon's is exact. The frame is mirrored with its last row repeated, so
# that the mosaic beyond the border is the wrong colour. Crop two pixels before comparing errors.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q colour-demosaicing==0.2.7 colour-science==0.4.7 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

warnings.filterwarnings("ignore")
import colour_demosaicing as bayer
import numpy as np

frame = np.zeros((32, 32, 3)) + [0.8, 0.5, 0.2]
mosaic = bayer.mosaicing_CFA_Bayer(frame)
border = {}
for name in ("bilinear", "Malvar2004", "Menon2007"):
    error = np.abs(getattr(bayer, f"demosaicing_CFA_Bayer_{name}")(mosaic) - frame)
    assert error[4:-4, 4:-4].max() < 1e-6, name
    border[name] = round(float(error.max()), 2)
print("largest error at the border:", border)
assert border["bilinear"] > 0.5 and border["Malvar2004"] > 0.2, "fixed: the border is interpolated right"
PYTHON
