"""What users bring, and nobody here has written: one module for each kind."""
