"""A room for each paper, a module for each experiment; the registry finds every `Experiment`."""
