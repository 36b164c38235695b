#!/usr/bin/env bash
# netCDF4 1.7.5.1 beside xarray 2026.9.0: a variable of unsigned bytes without a fill value, 255 among
# them, as a saturated picture has.
# Guess before it was run: four values, none masked: bytes have no fill value unless one is written.
# Seen: netCDF4 masks 255, the library's default fill value of that type, so the saturated pixels are
# gone; xarray reads the same file as 0, 1, 254, 255. Of int16 it masks -32767 alike.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q netCDF4==1.7.5.1.post1 xarray==2026.9.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import netCDF4
import numpy as np
import xarray

with netCDF4.Dataset("picture.nc", "w") as file:
    file.createDimension("x", 4)
    file.createVariable("light", "u1", ("x",))[:] = np.array([0, 1, 254, 255], dtype=np.uint8)
with netCDF4.Dataset("picture.nc") as file:
    masked = np.ma.getmaskarray(file["light"][:])
plain = xarray.open_dataset("picture.nc", engine="netcdf4")["light"].to_numpy()
print("netCDF4 masks", masked.tolist(), "and xarray reads", plain.tolist())
assert plain.tolist() == [0, 1, 254, 255]
assert masked.tolist() == [False, False, False, True], "fixed: nothing is masked"
PYTHON
