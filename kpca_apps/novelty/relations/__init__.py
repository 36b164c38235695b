"""Relations between columns: what goes with what, learned from a table, checked and told as rules."""
