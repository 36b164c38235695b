"""Denoising with a dictionary: kernel PCA of clean examples, projection, pre-image.

Examples are whole small images of one size (digits, glyphs, aligned faces), or patches of larger
ones. A noisy image is projected on their leading components in feature space, and the pre-image of
the projection is the result [1]_; overlapping patches are averaged. For photographs at large the
image's own groups of patches are better by decibels.

Bandwidth and number of components are chosen by held-out reconstruction, for each noise level, for
both grow as the noise falls: a fifth of the examples is held out, noise of a known level is added
to them, and what denoises them best is taken. Where the examples are noisy themselves, with
deviation s, no clean held-out image exists. Then more noise e ~ N(0, s^2) is drawn, y + a e is
denoised, and the result is compared with y - e / a: the two noises are uncorrelated, so the
comparison ranks results as the clean image would [2]_.

The noise level of an image too small to measure it on is what the examples cannot explain: outside
their leading principal components lies little of a clean image and most of white noise, whose
energy there is sigma^2 times the number of dimensions left. Against impulse noise, pixels far from
their denoised value are replaced by it, in part or wholly, and the image is denoised again, a few
times over [3]_: iteratively reweighted least squares with the weights of Welsch [4]_, where least
squares would let a few wild pixels pull the whole projection.

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
