"""Runs of the agent against a real service, with faults, kills and slow savers."""
