"""Contracts: a tool's requirements, effects, result and postconditions, and their language."""
