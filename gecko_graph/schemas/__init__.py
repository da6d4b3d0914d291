"""JSON Schema 2020-12: complaints about values, patterns and formats, made-up values, malformed schemas."""
