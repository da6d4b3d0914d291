"""What a rehearsal costs: the measurements behind `speed`."""
