"""Whether tests of agents are fair: good agents pass, bad ones fail, whatever the world does to them."""

from .suite import Fair

SUITE = Fair
