"""A server of the Model Context Protocol: tables and images for assistants."""
