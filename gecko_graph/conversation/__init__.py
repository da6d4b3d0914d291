"""What a conversation between a user, an agent and tools is made of; `conversation.py` has the graph."""
