"""Conversations as test cases: found in files, run in parallel, reported."""
