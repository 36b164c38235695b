"""
A dictionary for images of one kind
===================================

Mika's denoising as it was published: learn kernel PCA on clean examples of one kind, project noisy
ones, and find the pre-image. Good for digits, glyphs and spectra; photographs are better off with
:func:`kpca_apps.denoise_kpca`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kpca_apps import DictionaryDenoiser

digits = load_digits().images / 16.0
rng = np.random.default_rng(0)
order = rng.permutation(len(digits))
examples, others = digits[order[:600]], digits[order[600:608]]
noisy = others + rng.normal(0, 0.25, others.shape)

model = DictionaryDenoiser(sigma=0.25, random_state=0).fit(examples)
denoised = np.stack([model.denoise(image) for image in noisy])
before, after = (np.mean((found - others) ** 2) for found in (noisy, denoised))
print(f"mean squared error: {before:.4f} before, {after:.4f} after")

figure, axes = plt.subplots(3, 8, figsize=(8, 3.2), layout="constrained")
for row, images in zip(axes, (noisy, denoised, others), strict=True):
    for one, image in zip(row, images, strict=True):
        one.imshow(image, cmap="gray", vmin=0, vmax=1)
        one.axis("off")
