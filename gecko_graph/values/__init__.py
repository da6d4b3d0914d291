"""Pure functions on JSON values: patches, differences, digests, origins, notes."""
