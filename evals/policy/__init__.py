"""A written policy as a gate: contracts of an airline judge recorded conversations and hand-made violations."""
