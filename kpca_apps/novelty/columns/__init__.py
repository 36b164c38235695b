"""Tables become rows of numbers: roles of columns, coders, gaps, passes over rows."""
