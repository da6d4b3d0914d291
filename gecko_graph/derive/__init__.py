"""A state model from a document alone: the effect of each operation on its things, as unconfirmed contracts."""
