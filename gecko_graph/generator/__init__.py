"""Made-up values that fit a JSON Schema: plausible, seeded, the same in every process."""
