"""Relations between the columns of a table: found, checked, exported, used in scores."""
