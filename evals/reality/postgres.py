"""A private Postgres server on loopback, if this machine can run one."""

from __future__ import annotations

import atexit
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path


@cache
def start_postgres() -> str | None:
    """Start a server that stops with this process; return its address, or None if none can be started."""
    try:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError:
        return None
    as_root = os.geteuid() == 0  # Postgres refuses to run as root
    programs = [_find("initdb"), _find("postgres"), *([shutil.which("runuser")] if as_root else [])]
    if not all(programs):
        return None
    initdb, postgres = map(str, programs[:2])
    other, user = (["runuser", "-u", "postgres", "--"], "postgres") if as_root else ([], getpass.getuser())
    folder = Path(tempfile.mkdtemp(prefix="reality-"))
    folder.chmod(0o777)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = [*other, initdb, "-D", str(folder / "data"), "-A", "trust", "-U", user]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        return None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "max_connections=200"]
    options = [word for each in settings for word in ("-c", each)]
    command = [*other, postgres, "-D", str(folder / "data"), "-p", str(port), "-k", str(folder), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(_end, server)
    address = f"postgresql://{user}@127.0.0.1:{port}/postgres"
    for _ in range(300):
        try:
            with PostgresSaver.from_conn_string(address) as saver:
                saver.setup()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return address
    return None


def _find(name: str) -> str | None:
    """Return a server's program from the path, or the newest version in Debian's folder."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: path.parts[-3].zfill(9))
    return shutil.which(name) or (str(found[-1]) if found else None)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait(20)
