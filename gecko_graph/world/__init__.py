"""The ladder and its rungs, which answer calls."""
