"""The experiments of ``experiments.csv``: ``run_clusters`` runs ``clusters``, for example."""
