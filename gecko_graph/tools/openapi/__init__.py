"""OpenAPI: a document read as tools, and a toolkit written as a document; JSON Schema as such documents have it."""
