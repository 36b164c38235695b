"""One module an experiment, each with an ``EXPERIMENT`` for the registry."""
