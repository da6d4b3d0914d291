"""Contracts: what a tool requires, changes, returns and ensures, and the language they are written in."""
