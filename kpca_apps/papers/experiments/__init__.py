"""The experiments of ``experiments.csv``, by paper; ``run_clusters`` runs ``clusters``, etc."""
