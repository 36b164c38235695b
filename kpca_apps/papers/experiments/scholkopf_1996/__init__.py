"""Scholkopf, Smola and Muller (1996), MPI technical report 44, and its journal version."""
