"""Read OpenAPI documents as tools, with their dialects of JSON Schema, and export a toolkit as a document."""
