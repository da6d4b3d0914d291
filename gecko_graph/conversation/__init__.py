"""The parts of a conversation between a user, an agent and tools; `graph` puts them together."""
