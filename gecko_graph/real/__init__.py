"""Carrying out an accepted plan: preview, approval, real calls, and the drift from the prediction."""
