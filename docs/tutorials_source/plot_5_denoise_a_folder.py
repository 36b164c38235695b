"""
Denoise a folder of images
==========================

Files come back as they were, but for the noise: same name, format, type and metadata.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage import data

work = Path(tempfile.mkdtemp())
(work / "noisy").mkdir()
rng = np.random.default_rng(0)
for name in ("camera", "coins"):
    clean = getattr(data, name)()[100:228, 100:228]
    noisy = np.clip(np.round(clean + rng.normal(0, 20, clean.shape)), 0, 255)
    Image.fromarray(noisy.astype(np.uint8)).save(work / "noisy" / f"{name}.png")

# %%
# In a terminal: ``kpca denoise run noisy --out clean --quality fast``. With ``--json`` the result
# is printed on stdout too.

command = ["kpca", "denoise", "run", "noisy", "--out", "clean", "--quality", "fast", "--json"]
done = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True)
images = json.loads(done.stdout)["images"]
for image in images:
    print(f"{image['name']}: {image['status']}, noise {image['sigma']:.1f} of 255")

# %%
# The level was measured on each image. Beside the images, in ``clean/report``, is a report with
# before, after and what was removed.

figure, axes = plt.subplots(2, 2, figsize=(6, 6), layout="constrained")
for row, image in zip(axes, images, strict=True):
    for one, folder in zip(row, ("noisy", "clean/images"), strict=True):
        one.imshow(Image.open(work / folder / image["name"]), cmap="gray", vmin=0, vmax=255)
        one.set_title(f"{folder}/{image['name']}")
        one.axis("off")
