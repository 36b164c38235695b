"""The work on one image of a batch, here, in pieces or on a machine elsewhere."""
