"""Pure functions on the task state: patches, digests, views."""
