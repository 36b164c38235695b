"""How surprising rows are: the error of kernel PCA combined with the surprise of their cells."""
