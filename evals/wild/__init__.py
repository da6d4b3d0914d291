"""Documents that nobody here has written."""
