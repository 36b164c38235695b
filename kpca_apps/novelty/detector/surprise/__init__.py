"""How surprising rows are: the reconstruction error of kernel PCA combined with their cells."""
