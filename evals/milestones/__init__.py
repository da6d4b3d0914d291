"""Milestones derived from one conversation, judged on others: `python -m evals milestones`."""
