#!/usr/bin/env bash
# SimpleITK 2.5.7 and Pillow 13.0.0: TIFF files of half floats, signed bytes and 32-bit counts that
# tifffile 2026.3.3 wrote.
# Guess before it was run: each reader returns the values or refuses the file.
# Seen: SimpleITK returns the bits of the half floats as integers: 0.5 becomes 14336, and the order of
# positive and negative values is lost. Pillow returns -5 of signed bytes as 251, and
# 3,000,000,000 of unsigned counts as -1,294,967,296. tifffile reads all three.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tifffile==2026.3.3 SimpleITK==2.5.7 pillow==13.0.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import SimpleITK as sitk
import tifffile
from PIL import Image


def written(values, dtype):
    pixels = np.tile(np.array(values, dtype), (4, 1))
    tifffile.imwrite("picture.tif", pixels, photometric="minisblack")
    assert np.array_equal(tifffile.imread("picture.tif"), pixels)
    return "picture.tif"


halves = sitk.GetArrayFromImage(sitk.ReadImage(written([0.5, 2, -3], np.float16)))[0].tolist()
signed = np.asarray(Image.open(written([-5, 7, 100], np.int8)))[0].tolist()
counts = np.asarray(Image.open(written([3_000_000_000, 7], np.uint32)))[0].tolist()
print("SimpleITK, half floats 0.5, 2, -3:", halves)
print("Pillow, signed -5, 7, 100:", signed, "and counts 3000000000, 7:", counts)
assert halves == [14336, 16384, 49664], "fixed: half floats are read or refused"
assert signed == [251, 7, 100], "fixed: signed bytes are read or refused"
assert counts == [-1294967296, 7], "fixed: 32-bit counts are read or refused"
PYTHON
