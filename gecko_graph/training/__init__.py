"""Training data: rows verified by rules in a `World`, tasks made from contracts, and the training loop."""

from __future__ import annotations
