"""Contracts: what a tool requires, changes, returns and ensures, and the language in which they say so."""
