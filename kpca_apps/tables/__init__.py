"""Tables of many formats: columns of values, and the line of each row."""
