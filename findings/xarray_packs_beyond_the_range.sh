#!/usr/bin/env bash
# xarray 2026.9.0, netCDF4 1.7.5.1.post1: to_netcdf with values packed as int16 at a scale of .01, as
# weather and satellite archives have them, and one value beyond 327.67.
# Guess before it was run: an error.
# Seen (x86-64): the value wraps: 400 is read back as -255.36, -400 as 255.36. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q xarray==2026.9.0 netCDF4==1.7.5.1.post1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W error::RuntimeWarning -W error::UserWarning - <<'PYTHON'
import numpy as np
import xarray as xr

packed = {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -32768}
xr.Dataset({"v": ("t", np.array([1.0, 400.0, -400.0]))}).to_netcdf("v.nc", encoding={"v": packed})
with xr.open_dataset("v.nc") as read:
    values = read.v.values
print(values)
assert np.allclose(values, [1, -255.36, 255.36]), "fixed: an error, or the nearest value"
PYTHON
