"""Kernel PCA: kernels, exact and Nystrom fits, projections, reconstruction errors.

A fit runs through `rows` and `checked_rows` (input), `precision` and `seeding`, `plan` (chooses
the method), `exact` or `nystroem` with `landmarks`, and `fit` (calls them). It ends in a
`subspace`, which `compress` shrinks. `tikhonov` filters without eigenvectors, `blocks` splits a sum
of kernels, `kernel_pca` is the estimator.
"""
