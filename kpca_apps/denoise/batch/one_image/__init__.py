"""The work on one image of a batch, on this machine, in pieces, or on another machine."""
