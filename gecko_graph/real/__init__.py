"""Carrying out an accepted plan: what is previewed, approved, called, and how reality differed."""
