"""Learning: contracts from calls that were really made."""
