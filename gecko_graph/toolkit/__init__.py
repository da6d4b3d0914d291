"""Tools: where they come from, what they say of themselves, what they promise."""
