"""The language of contracts: expressions, a subset of Python's on JSON values, and templates."""
