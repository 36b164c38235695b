"""How surprising rows are: kernel PCA's error combined with the surprise of their cells."""
