"""Pure functions on the task state: patches, expressions, digests, views."""
