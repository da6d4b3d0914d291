"""Training data: rows that rules check in a `World`, tasks made from contracts, and the loop between two trainings."""

from __future__ import annotations
