"""The shop, and tasks that are made of it once a process, as many as a test wants."""

from itertools import islice

from gecko_graph import Scenario
from gecko_graph.training.tasks import make_tasks
from tests.phone import FOLDER

SHOP = Scenario.load(FOLDER.parent / "shop" / "two-teas.gecko.yaml")
MAKING = make_tasks(SHOP.tools, [SHOP.state], 12)
MADE: list = []


def made(n=12):
    MADE.extend(islice(MAKING, max(0, n - len(MADE))))
    return MADE[:n]
