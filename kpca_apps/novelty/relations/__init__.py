"""Relations between columns: what goes with what, learned, checked and told as rules."""
