"""A world as a server (extra `serve`): HTTP with the document's paths, MCP, sessions that fork, reset and resume."""
