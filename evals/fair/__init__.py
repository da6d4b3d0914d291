"""Whether tests of agents are fair: good agents pass and bad ones fail, under all faults of the world."""

from .suite import Fair

SUITE = Fair
