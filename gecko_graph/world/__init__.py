"""One call on one task state: validator, ladder of rungs, commit; worlds and origins of values."""
