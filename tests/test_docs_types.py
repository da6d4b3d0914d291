"""Every Python block of the docs passes `mypy --strict`, and Pyright where it is installed (`basedpyright`)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import DOCS, ROOT, blocks


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The folder of the pages' blocks, one file a page."""
    folder = tmp_path_factory.mktemp("pages")
    for page in DOCS:
        if code := blocks(page, "python"):
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            (folder / f"{name}.py").write_text("\n".join(code), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_blocks_pass_mypy(written):
    pytest.importorskip("mypy")
    cache = ROOT / ".mypy_cache" / "docs"  # all but the pages is the same in the next run
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(cache)]
    # not run at the root: there mypy takes the checkout for more files to check, without the project's own settings
    pages = sorted(path.name for path in written.glob("*.py"))
    run = subprocess.run([*command, *pages], capture_output=True, text=True, cwd=written)
    assert run.returncode == 0, run.stdout


@pytest.mark.slow
@pytest.mark.skipif(find_spec("basedpyright") is None, reason="basedpyright is not installed")
def test_the_blocks_pass_pyright(written):
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (written / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, "--outputjson"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=written)
    found = json.loads(run.stdout)["generalDiagnostics"]
    told = [f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}" for each in found]
    assert not told, "\n".join(told)
