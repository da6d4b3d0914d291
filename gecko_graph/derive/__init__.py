"""State models derived from a document alone: the effects of operations on their things, as derived contracts."""
