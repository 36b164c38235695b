"""Kinds of noise: a file each, named as in `kpca_apps.denoise.options.NOISE_MODELS`."""
