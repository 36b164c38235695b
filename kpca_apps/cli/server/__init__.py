"""A server of the Model Context Protocol: what assistants may ask of tables and images."""
