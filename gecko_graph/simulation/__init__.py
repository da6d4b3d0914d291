"""The ladder and its rungs: who may answer a call."""
