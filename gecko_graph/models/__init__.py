"""Models by role: asking, replying, counting, recording."""
