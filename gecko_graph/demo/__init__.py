"""A small real service for the demonstration, the tests and the evaluations."""

from __future__ import annotations
