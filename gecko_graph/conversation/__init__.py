"""What a conversation between a user, an agent and tools is made of; `graph` puts it together."""
