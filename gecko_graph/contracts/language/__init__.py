"""The language of contracts: expressions, Jinja2's syntax on JSON values, and templates made of them."""
