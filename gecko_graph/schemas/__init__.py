"""JSON Schema 2020-12: what a schema has against a value, patterns and formats, and schemas that are not well made."""
