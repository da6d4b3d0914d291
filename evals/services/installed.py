"""Third-party services from PyPI, each in its own environment and process, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from ..harness.options import EvalError

WAIT_S = 240
GRAPH = """
from langgraph.graph import START, StateGraph
from typing import TypedDict
class State(TypedDict, total=False):
    x: str
def node(state): return {"x": "done"}
graph = StateGraph(State).add_node(node).add_edge(START, "node").compile()
"""
KINTO = """
[server:main]
use = egg:waitress#main
host = 127.0.0.1
port = %(http_port)s
[app:main]
use = egg:kinto
kinto.storage_backend = kinto.core.storage.memory
kinto.cache_backend = kinto.core.cache.memory
kinto.permission_backend = kinto.core.permission.memory
kinto.userid_hmac_secret = not-secret
multiauth.policies = basicauth
kinto.bucket_create_principals = system.Authenticated
"""

AIRFLOW_TOKEN = """
import json
from pathlib import Path
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.services.login import SimpleAuthManagerLogin
init_auth_manager()
token = SimpleAuthManagerLogin.create_token_all_admins()
Path("token.json").write_text(json.dumps({"authorization": f"Bearer {token}"}))
"""


class Installed(NamedTuple):
    """A packaged service: what pip installs, how it is started, where its document is.

    `command` gets the environment's programs, a folder for data and a port. `document` is a path of the service, or of
    a file in the environment; `prefix` precedes the document's paths. `headers` are sent to the service and to its
    simulation; if `key` names a value in the service's data, it replaces the first header's.
    """

    pins: tuple[str, ...]
    command: Callable[[Path, Path, int], list[str]]
    document: str
    ready: str
    prefix: str = ""
    variables: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    key: str = ""
    files: Mapping[str, str] = {}


SERVICES: Mapping[str, Installed] = {
    "langgraph": Installed(
        ("langgraph-cli[inmem]", "langgraph-api==0.16.7"),
        lambda bin, data, port: [
            str(bin / "langgraph"), "dev", "--no-browser", "--no-reload", "--port", str(port),
        ],
        "/openapi.json", "/ok",
        variables={"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        files={"graph.py": GRAPH, "langgraph.json": '{"dependencies": ["."], "graphs": {"agent": "./graph.py:graph"}}'},
    ),
    "prefect": Installed(
        ("prefect==3.9.1",),
        lambda bin, data, port: [str(bin / "prefect"), "server", "start", "--port", str(port)],
        "/openapi.json", "/api/health", "/api",
        {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_HOME": "."},
    ),
    "chroma": Installed(
        ("chromadb==1.5.9",),
        lambda bin, data, port: [str(bin / "chroma"), "run", "--path", str(data), "--port", str(port)],
        "/openapi.json", "/api/v2/heartbeat",
        variables={"ANONYMIZED_TELEMETRY": "False"}, headers={"x-chroma-token": "any"},
    ),
    "changedetection": Installed(
        ("changedetection.io==0.60.10",),
        lambda bin, data, port: [str(bin / "changedetection.io"), "-d", str(data), "-h", "127.0.0.1", "-p", str(port)],
        "**/changedetectionio/**/api-spec.yaml", "/api/v1/systeminfo", "/api/v1",
        {"DISABLE_VERSION_CHECK": "true"},
        headers={"x-api-key": "any"}, key="changedetection.json:settings.application.api_access_token",
    ),
    "kinto": Installed(
        ("kinto==26.5.0",),
        lambda bin, data, port: [str(bin / "kinto"), "start", "--ini", "kinto.ini", "--port", str(port)],
        "/v1/__api__", "/v1/__heartbeat__", "/v1",
        headers={"Authorization": "Basic dXNlcjpzZWNyZXQ="}, files={"kinto.ini": KINTO},
    ),
    "phoenix": Installed(
        ("arize-phoenix==20.26.1",),
        lambda bin, data, port: [
            "env", f"PHOENIX_PORT={port}", f"PHOENIX_GRPC_PORT={port + 1}", f"PHOENIX_WORKING_DIR={data}",
            str(bin / "phoenix"), "serve",
        ],
        "/openapi.json", "/healthz",
        variables={"PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false"},
    ),
    "zenml": Installed(
        ("zenml[server]==0.98.0",),
        lambda bin, data, port: [
            "env", f"ZENML_CONFIG_PATH={data}", f"ZENML_LOCAL_STORES_PATH={data / 'stores'}",
            str(bin / "uvicorn"), "zenml.zen_server.zen_server_api:app", "--host", "127.0.0.1", "--port", str(port),
        ],
        "/openapi.json", "/health",
        variables={
            "ZENML_SERVER_AUTH_SCHEME": "NO_AUTH", "ZENML_SERVER_DEPLOYMENT_TYPE": "local",
            "ZENML_SERVER_AUTO_ACTIVATE": "true", "ZENML_ANALYTICS_OPT_IN": "false",
        },
    ),
    "airflow": Installed(
        ("apache-airflow==3.3.2",),
        lambda bin, data, port: [
            "env", f"AIRFLOW_HOME={data}", "sh", "-c",
            f"airflow db migrate && python sign.py && exec airflow api-server -H 127.0.0.1 -p {port} -w 1",
        ],
        "/openapi.json", "/api/v2/version",
        variables={
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
            "AIRFLOW__API_AUTH__JWT_SECRET": "not-secret" * 8,
        },
        headers={"Authorization": "any"}, key="token.json:authorization", files={"sign.py": AIRFLOW_TOKEN},
    ),
}  # fmt: skip
"""The services; the figures in reports/living.md were measured with these versions."""


def install(name: str, folder: Path) -> Path:
    """Return the environment of a service, which is created on first use."""
    home = folder / name
    if not (home / "installed").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *SERVICES[name].pins]
        if subprocess.run(pip, check=False).returncode:
            raise EvalError(f"pip could not install {', '.join(SERVICES[name].pins)}")
        (home / "installed").touch()
    return home


@contextmanager
def started(name: str, folder: Path, document: Path) -> Iterator[httpx.Client]:
    """Start a service without data, write its document to a file, and yield a client; kill it afterwards."""
    one, home, port = SERVICES[name], install(name, folder), _free_port()
    with tempfile.TemporaryDirectory() as place:
        data = Path(place)
        for file, text in one.files.items():
            (data / file).write_text(text, encoding="utf-8")
        kept = {key: each for key, each in os.environ.items() if key in ("PATH", "HOME", "LANG")}
        environment = {**kept, "PATH": f"{home / 'bin'}:{kept.get('PATH', '')}", **one.variables}
        with (data / "log").open("w") as log:
            command = one.command(home / "bin", data, port)
            process = subprocess.Popen(
                command, cwd=data, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        try:
            address, fresh = f"http://127.0.0.1:{port}", httpx.Limits(max_keepalive_connections=0)
            with httpx.Client(base_url=address, timeout=60, trust_env=False, limits=fresh) as client:
                _wait(client, one.ready, process, data / "log")
                client.headers.update(_credential(one, data))
                if one.document.startswith("/"):
                    document.write_bytes(client.get(one.document).content)
                else:
                    shutil.copy(next(home.glob(one.document)), document)
                yield client
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _wait(client: httpx.Client, path: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if client.get(path).status_code < 500:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise EvalError(f"{process.args!r} does not answer: {log.read_text(encoding='utf-8')[-2000:]}")


def _credential(one: Installed, data: Path) -> dict[str, str]:
    if not one.key:
        return {**one.headers}
    file, _, way = one.key.partition(":")
    value = json.loads((data / file).read_text(encoding="utf-8"))
    for part in way.split("."):
        value = value[part]
    return {next(iter(one.headers)): str(value)}
