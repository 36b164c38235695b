"""Tables become rows of numbers: roles of columns, encoders, missing values, passes over rows."""
