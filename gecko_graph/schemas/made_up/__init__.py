"""Made-up values that fit a JSON Schema: seeded, the same in every process."""
