"""Forward execution with gates before and after each call (ToolGate)."""
