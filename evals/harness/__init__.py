"""What runs a suite: cases, journal, options, figures, report."""
