"""Pure functions on the task state: patches, differences, digests."""
