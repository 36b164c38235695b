"""
A gallery: microscope, telescope, camera
========================================

What comes out of instruments, and how it goes back: the axes of a microscope's stack, the holes of
an astronomer's image, the mosaic of a camera's sensor. Each is a file, denoised by the command.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rawpy
import tifffile
from astropy.io import fits
from scipy.ndimage import gaussian_filter
from skimage import data

work = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)


def denoise(name, *options):
    """Denoise a file by the command; return where the result is, and what it says of it."""
    command = ["kpca", "denoise", "run", name, "--out", f"{name}-clean", *options, "--json"]
    command += ["--quality", "fast"]
    done = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True)
    image = json.loads(done.stdout)["images"][0]
    return work / f"{name}-clean" / "images" / image["output"].split("/")[-1], image


def show(before, after, titles=("as it came", "denoised")):
    """Draw two pictures side by side."""
    _, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
    for one, picture, title in zip(axes, (before, after), titles, strict=True):
        one.imshow(picture, cmap="gray", vmin=np.nanmin(before), vmax=np.nanmax(before))
        one.set_title(title)
        one.axis("off")


# %%
# A microscope's stack
# --------------------
# Five slices of cells, a few photons a pixel, in an OME-TIFF that knows its axes and the size of a
# pixel. ``--stack`` denoises slices together; the noise is found to be that of counted light.

cells = gaussian_filter(rng.standard_normal((9, 128, 128)), (1.5, 4, 4))[2:7]
light = 4 + 60 * np.clip(cells / cells.std() - 0.5, 0, 1)
counted = rng.poisson(light).astype(np.uint16)
axes = {"axes": "ZYX", "PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 1.0}
tifffile.imwrite(work / "cells.ome.tif", counted, metadata=axes, photometric="minisblack")
path, info = denoise("cells.ome.tif", "--stack")
with tifffile.TiffFile(path) as file:
    print(info["noise"], file.series[0].axes, 'PhysicalSizeX="0.2"' in file.ome_metadata)
show(counted[2], tifffile.imread(path)[2])

# %%
# A telescope's image
# -------------------
# Floats in FITS, with missing pixels (NaN): these stay missing and do not influence the rest. The
# headers stay as well.

galaxy = 40 * np.exp(-np.hypot(*np.indices((160, 160)) - 80) / 18)
sky = (galaxy + rng.normal(5, 2, galaxy.shape)).astype(np.float32)
sky[:, 60:63] = np.nan  # a dead column
header = fits.Header({"OBJECT": "M 0", "BUNIT": "adu"})
fits.writeto(work / "sky.fits", sky, header)
path, info = denoise("sky.fits")
clean = fits.getdata(path)
print(f"level {info['sigma']:.2f} adu, {fits.getheader(path)['OBJECT']}")
print("the same holes:", np.array_equal(np.isnan(clean), np.isnan(sky)))
show(sky, clean)

# %%
# A camera's mosaic
# -----------------
# One colour a pixel, as the sensor saw it, in a DNG. It is denoised before colours are computed;
# ``--raw-out dng`` gives a DNG again, which any program for raw files develops.

photograph = data.astronaut()[:256, 100:356].astype(float) ** 2.2 / 255**1.2
mosaic = photograph[..., 1].copy()
mosaic[::2, ::2], mosaic[1::2, 1::2] = photograph[::2, ::2, 0], photograph[1::2, 1::2, 2]
seen = 256 + np.clip(rng.normal(mosaic * 10, np.sqrt(mosaic * 10 * 8 + 100)), 0, 3000)
matrix = [9000, -2000, -1000, -4000, 13000, 1000, -500, 2000, 6000]  # XYZ to the camera's colours
tags = [
    (50706, 1, 4, bytes([1, 4, 0, 0])),  # a DNG, of this version
    (50708, 2, 0, b"A camera"),
    (33421, 3, 2, (2, 2)),
    (33422, 1, 4, bytes([0, 1, 1, 2])),  # red, green; green, blue
    (50714, 3, 1, 256),  # black
    (50717, 3, 1, 4095),  # white
    (50721, 10, 9, [part for one in matrix for part in (one, 10000)]),
    (50778, 3, 1, 21),
]
options = {"photometric": 32803, "metadata": None}
with tifffile.TiffWriter(work / "shot.dng") as file:
    file.write(seen.astype(np.uint16), extratags=[(*one, True) for one in tags], **options)
path, _ = denoise("shot.dng", "--raw-out", "dng")
with rawpy.imread(str(work / "shot.dng")) as noisy, rawpy.imread(str(path)) as clean:
    print("the same pattern:", np.array_equal(noisy.raw_pattern, clean.raw_pattern))
    pictures = [one.postprocess(use_camera_wb=True, no_auto_bright=True) for one in (noisy, clean)]
show(*pictures, titles=("developed as it came", "developed from the denoised DNG"))
