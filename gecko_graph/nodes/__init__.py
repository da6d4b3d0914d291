"""The graph's nodes, one module each. They never import each other."""
