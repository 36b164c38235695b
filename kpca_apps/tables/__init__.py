"""Tables: whatever file they come in, columns of values and the line each row stands on."""
