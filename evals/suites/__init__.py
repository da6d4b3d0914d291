"""One module or package per suite, with its class as `SUITE`."""
