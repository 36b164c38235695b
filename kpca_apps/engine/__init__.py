"""Kernel PCA: kernels, exact and Nystrom fits, projections, reconstruction errors.

From rows to a fit: `rows`, `checked_rows`, `precision` and `seeding`; `plan` chooses `exact` or
`nystroem` (through `landmarks`), `fit` calls it, `subspace` is what comes out, `compress` makes it
smaller. `tikhonov` filters without components, `blocks` splits a sum of kernels. `kernel_pca` is
the estimator.
"""
