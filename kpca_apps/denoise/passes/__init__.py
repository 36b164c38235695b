"""White noise removed by kernel PCA on groups of similar patches, in passes over an image."""
