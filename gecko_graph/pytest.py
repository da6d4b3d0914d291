"""A pytest plugin: `pytest -p gecko_graph.pytest` runs the conversations of `*.gecko.yaml` as tests.

Name the agent by `gecko_agent = module:factory` in the ini file, or by `--gecko-agent`. The fixture `gecko_case` runs
one conversation in a test of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.outcomes import Skipped

from .conversation.agent import AgentLike
from .conversation.result import CaseResult
from .display.words import clean
from .errors import GeckoError
from .scenario import Scenario
from .scenario.cases.batch import load_agent
from .scenario.cases.run import run_case
from .values.observation import Observer

AGENT = "gecko_agent"
UNKNOWN = 5
"""The exit code if nothing failed but a conversation is unknown, as for `gecko-graph test`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "agent under test: module:factory (from tools to an agent), provider:name, or a server's address"
    parser.addini(AGENT, about)
    group = parser.getgroup("gecko-graph")
    group.addoption("--gecko-agent", metavar="AGENT", help=about)
    about_rows = "append a row per real call of agents, middleware and worlds (use a sandbox), for gecko-graph learn"
    group.addoption("--gecko-observe", metavar="FILE", help=about_rows)


def pytest_configure(config: pytest.Config) -> None:
    """Record the real calls of the tests."""
    if file := config.getoption("--gecko-observe"):
        Observer.everywhere = Observer(Path(file).absolute())


def pytest_unconfigure() -> None:
    """Stop recording."""
    Observer.everywhere = None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenarios with a simulated user."""
    if file_path.name.endswith(".gecko.yaml"):
        collected: pytest.Collector = CaseFile.from_parent(parent, path=file_path)
        return collected
    return None


class CaseFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield CaseItem.from_parent(self, name=self.path.name.removesuffix(".gecko.yaml"))


class CaseItem(pytest.Item):
    def runtest(self) -> None:
        """Run the conversation; raise unless it succeeded."""
        scenario = Scenario.load(self.path)
        result = run_case(scenario, find_agent(self.config))
        if result.status == "unknown":
            raise CaseUnknown(result.explain())
        if not result.passed:
            raise CaseFailed(result.explain())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the conversation from the first missed milestone on, or a GeckoError's message."""
        if isinstance(excinfo.value, CaseFailed | GeckoError):
            return clean(str(excinfo.value), lines=True)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


class CaseFailed(AssertionError):
    """A conversation that failed."""


class CaseUnknown(Skipped):
    """A conversation that neither passed nor failed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Mark the report of an unknown conversation: pytest itself only has passed, failed and skipped."""
    report = yield
    report.is_unknown = call.excinfo is not None and isinstance(call.excinfo.value, CaseUnknown)
    return report


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    return ("unknown", "u", "UNKNOWN") if getattr(report, "is_unknown", False) else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Set the exit code of a run in which nothing failed but a conversation is unknown."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus == pytest.ExitCode.OK and terminal and terminal.stats.get("unknown"):
        session.exitstatus = UNKNOWN


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the conversations that could not be decided."""
    for report in terminalreporter.stats.get("unknown", ()):
        terminalreporter.section(f"unknown: {report.nodeid}")
        terminalreporter.write_line(clean(report.longrepr[2].partition(": ")[2], lines=True))


def find_agent(config: pytest.Config) -> AgentLike:
    """Return the agent under test. Raises GeckoError if none is configured."""
    name = config.getoption("--gecko-agent") or config.getini(AGENT)
    if not name:
        raise GeckoError("no agent to test: write gecko_agent = module:factory in the ini file, or --gecko-agent")
    return load_agent(str(name))


@pytest.fixture
def gecko_case(request: pytest.FixtureRequest) -> Callable[..., CaseResult]:
    """Return a function that runs the conversation of a scenario file: `gecko_case(path, agent=..., user=...)`.

    Further arguments are those of `run_case`. The result has `score`, `milestones`, `transcript`, `passed` and
    `explain()`. A relative path is relative to the test's folder.
    """

    def run(path: str | Path, *, agent: AgentLike | None = None, **more: Any) -> CaseResult:
        scenario = Scenario.load(request.path.parent / path)
        return run_case(scenario, find_agent(request.config) if agent is None else agent, **more)

    return run
