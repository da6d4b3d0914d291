"""The agent's nodes, one module each."""
