"""What a prompt shows of a large JSON value: the parts that matter, within a budget of characters."""
