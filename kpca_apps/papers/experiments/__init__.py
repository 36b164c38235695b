"""The experiments that ``experiments.csv`` lists, by paper: clusters is ``run_clusters``."""
