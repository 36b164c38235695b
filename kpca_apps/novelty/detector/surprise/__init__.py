"""How surprising rows are: the reconstruction error of kernel PCA, joined with their cells."""
