"""
Masks, holes and regions
========================

A round field of view, dead pixels, what a stitched picture lacks: pixels that are no data are
neither used nor changed. A region denoises a part of an image alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from kpca_apps import denoise_kpca, denoise_with_info

rng = np.random.default_rng(0)
clean = data.brick()[100:292, 100:292].astype(float)
noisy = clean + rng.normal(0, 20, clean.shape)

# %%
# An endoscope sees a disc, and some of its pixels are dead. Their value, here 0, is not data: a
# mask marks them, as NaN would. On the command line it is an image, ``--mask FILE``.

rows, columns = np.indices(clean.shape)
mask = (np.hypot(rows - 96, columns - 96) < 90) & (rng.random(clean.shape) > 0.02)
seen = np.where(mask, noisy, 0)
denoised, info = denoise_with_info(seen, mask=mask, data_range=255, quality="fast")
print(f"level found: {info.sigma:.1f}")
print("outside the mask nothing has changed:", np.array_equal(denoised[~mask], seen[~mask]))

# %%
# The noise is measured on the data only. Values under the mask have no influence: the rest is the
# same to the last bit, whatever they are.

other = np.where(mask, noisy, 255)
again = denoise_kpca(other, mask=mask, data_range=255, quality="fast")
print("the same inside:", np.array_equal(again[mask], denoised[mask]))

# %%
# A region is given by the column and row of its corner, its width and its height. Its noise is
# measured inside; outside nothing changes.

part = denoise_kpca(noisy, region=(40, 30, 112, 96), data_range=255, quality="fast")

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
pictures = {"seen through a disc": seen, "denoised": denoised, "a region denoised": part}
for one, (title, picture) in zip(axes, pictures.items(), strict=True):
    one.imshow(picture, cmap="gray", vmin=0, vmax=255)
    one.set_title(title)
    one.axis("off")
