"""Every Python block of the docs passes Pyright (`basedpyright`)."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import DOCS, ROOT, blocks


@pytest.mark.slow
@pytest.mark.skipif(find_spec("basedpyright") is None, reason="basedpyright is not installed")
def test_the_blocks_pass_pyright(tmp_path):
    for page in DOCS:
        if code := blocks(page, "python"):
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            (tmp_path / f"{name}.py").write_text("\n".join(code), encoding="utf-8")
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, "--outputjson"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(run.stdout)["generalDiagnostics"]
    told = [f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}" for each in found]
    assert not told, "\n".join(told)
