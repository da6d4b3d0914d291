"""One module or package a suite; each holds its class as `SUITE`."""
