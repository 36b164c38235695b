"""Tables become rows of numbers: roles of columns, coders, gaps, faults, odd cells."""
