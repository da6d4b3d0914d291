"""The nodes of forward execution, one module each."""
