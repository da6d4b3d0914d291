"""Contracts: a tool's requirements, effects, result and postconditions, and the language they are written in."""
