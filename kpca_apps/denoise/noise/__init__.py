"""Kinds of noise: a file for each, named as in `kpca_apps.denoise.options.NOISE_MODELS`."""
