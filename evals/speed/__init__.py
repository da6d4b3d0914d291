"""The cost of a rehearsal: the measurements of the suite `speed`."""
