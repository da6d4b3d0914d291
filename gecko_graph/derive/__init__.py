"""A state that follows from a document alone: what each operation does to which thing, as unconfirmed contracts."""
