"""Execution of an accepted plan: preview, approval, real calls, and deviations from the prediction."""
