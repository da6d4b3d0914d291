"""A conversation between a user, an agent and tools; `graph` puts the parts together."""
