"""
Stacks, cameras and other noise
===============================

Pages of a film or volume resemble each other, and are denoised better together. Photographs that a
camera saved have noise that neighbouring pixels share.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps import denoise_kpca, denoise_with_info

rng = np.random.default_rng(0)
photograph = data.camera().astype(float)

# %%
# A film of eight pages, each moved by three pixels. ``stack_axis`` names the axis of the pages; on
# the command line ``--stack`` takes the pages of a TIFF file, with the axes of its OME or ImageJ
# metadata.

film = np.stack([photograph[150:246, 150 + 3 * page : 246 + 3 * page] for page in range(8)])
noisy = film + rng.normal(0, 25, film.shape)
together = denoise_kpca(noisy, sigma=25, data_range=255, stack_axis=0)
singly = np.stack([denoise_kpca(page, sigma=25, data_range=255) for page in noisy])
for name, result in (("page by page", singly), ("together", together)):
    print(f"{name}: {peak_signal_noise_ratio(film, result, data_range=255):.2f} dB")

# %%
# Noise with shared pixels, as demosaicking and JPEG leave it. ``noise="auto"`` looks for it;
# ``noise="camera"`` requires it.

colour = data.astronaut()[:160, 100:260].astype(float)
grain = gaussian_filter(rng.normal(0, 30, colour.shape), (1, 1, 0))
shot = np.clip(np.round(colour + grain), 0, 255).astype(np.uint8)
clean, info = denoise_with_info(shot, noise="camera", channel_axis=-1, quality="fast")
white = denoise_kpca(shot, noise="gaussian", channel_axis=-1, quality="fast")
for name, result in (("as white noise", white), ("as a camera's", clean)):
    print(f"{name}: {peak_signal_noise_ratio(colour, result, data_range=255):.2f} dB")

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
pictures = {"noisy": shot, "denoised": clean, "truth": colour}
for one, (title, picture) in zip(axes, pictures.items(), strict=True):
    one.imshow(np.clip(picture, 0, 255).astype(np.uint8))
    one.set_title(title)
    one.axis("off")
