"""Two sets of course notes, one in English and one in Spanish."""
