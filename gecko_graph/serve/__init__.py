"""A world as a server (extra `serve`): HTTP by the document's paths, MCP, sessions that fork, reset and resume."""
