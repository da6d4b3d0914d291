"""What runs a suite: cases, options, figures, report."""
