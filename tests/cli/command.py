"""The command as a process of its own, and what it says of a mistake."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

from gecko_graph.cli.arguments import cli
from gecko_graph.scenario import examples
from tests import forked

ROOT = Path(__file__).resolve().parents[2]
FILES, SHOP, CALENDAR = (str(examples()[name]) for name in ("files", "shop", "calendar"))
SHOP_API = str(ROOT / "examples" / "shop" / "shop.openapi.yaml")
COMMAND = [sys.executable, "-c", "import sys; from gecko_graph.cli import main; sys.exit(main())"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def as_id(words):
    """The words of a command as a test's identifier, which is the same wherever the checkout is."""
    return " ".join(words).replace(f"{ROOT}/", "")


def process(*words, env=ENVIRONMENT, **options):
    return forked.run([*COMMAND, *words], capture_output=True, text=True, timeout=120, env=env, check=False, **options)


def parse(name, *words):
    """The options of a command, as it is given them."""
    return SimpleNamespace(**cli.commands[name].make_context(name, list(words)).params)


def mistake(told):
    code, out, err = told
    assert code == 2
    assert out == ""
    assert err.startswith("gecko-graph: ")
    assert "Traceback" not in err
    return err.removeprefix("gecko-graph: ").strip()
