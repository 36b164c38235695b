"""A module for each experiment, whose `run` is called by the name that `experiments.csv` lists."""
