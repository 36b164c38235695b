"""Denoising with a dictionary: kernel PCA of clean examples, projection, pre-image.

Examples are whole small images of one size (digits, glyphs, aligned faces), or patches of larger
images. A noisy image is projected on the leading components of the examples in feature space, and
the pre-image of the projection is the result [1]_; overlapping patches are averaged. For
photographs, groups of the image's own patches are better by decibels.

Bandwidth and number of components are chosen for each noise level by held-out reconstruction: noise
is added to a fifth of the examples, and the values that denoise them best are used. Noisy examples
y (deviation s) have no clean version. So noise e ~ N(0, s^2) is drawn, y + a e is denoised, and the
result is compared with y - e / a. The noises of both are uncorrelated, so the comparison ranks
results as the clean image would [2]_.

The noise level of a small image is measured outside the leading principal components of the
examples, where a clean image has little energy and white noise sigma^2 in each dimension. Impulse
noise is removed by iteratively reweighted least squares [3]_ with the weights of Welsch [4]_:
pixels far from their denoised value are moved towards it, and the image is denoised again.

References
----------
.. [1] Mika, Scholkopf, Smola, Muller, Scholz and Ratsch (1998), Kernel PCA and de-noising in
   feature spaces, NIPS 11.
.. [2] Pang, Zheng, Quan and Ji (2021), Recorrupted-to-recorrupted: unsupervised deep learning for
   image denoising, CVPR.
.. [3] Takahashi and Kurita (2002), Robust de-noising by kernel PCA, ICANN, 739-744.
.. [4] Holland and Welsch (1977), Robust regression using iteratively reweighted least-squares,
   Communications in Statistics A 6, 813-827.
"""

from kpca_apps.denoise.dictionary.denoiser import DictionaryDenoiser

__all__ = ["DictionaryDenoiser"]
