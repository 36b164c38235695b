"""What is found in a judged table, in words: rows, patterns, repeats, slips."""
