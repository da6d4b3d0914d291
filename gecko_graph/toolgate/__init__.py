"""Forward execution by gates (ToolGate)."""
