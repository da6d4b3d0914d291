"""Tools of MCP servers, over the official client (extra `mcp`)."""
