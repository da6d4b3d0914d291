"""A written policy as a gate: recorded conversations and hand-made violations before the contracts of an airline."""
