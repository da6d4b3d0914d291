"""Conversations as test cases: found in files, run several at once, reported."""
