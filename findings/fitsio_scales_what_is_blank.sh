#!/usr/bin/env bash
# fitsio 1.4.2 beside astropy 8.0.2: an image of 16-bit integers with BLANK, BSCALE and BZERO.
# Guess before it was run: both give NaN, or the stored blank value, where pixels are blank.
# Seen: astropy gives NaN. fitsio scales the blank value like any other, so that a gap of -999 becomes
# -1993 and no longer equals BLANK; without BSCALE it gives -999 as stored, astropy NaN again. A mean,
# or a noise level, is then taken over the gaps.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q fitsio==1.4.2 astropy==8.0.2
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import fitsio
import numpy as np
from astropy.io import fits

picture = fits.PrimaryHDU(np.array([[1, 2, -999]], dtype=np.int16))
picture.header.update(BLANK=-999, BSCALE=2.0, BZERO=5.0)
picture.writeto("scaled.fits")
one, other = fits.getdata("scaled.fits"), fitsio.read("scaled.fits")
print("astropy", one, "fitsio", other)
assert np.isnan(one[0, 2])
assert other[0, 2] == -999 * 2 + 5, "fixed: blank pixels are not scaled"
PYTHON
