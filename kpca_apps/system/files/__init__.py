"""Files of this machine: results that are whole or not there, temporary ones, models."""
