"""The harness that runs a suite: cases, options, figures, report."""
