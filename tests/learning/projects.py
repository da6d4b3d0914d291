"""A service of projects, with what its document does not say, and rows of calls on it.

A removed project takes its tasks with it, a new one has a board and a task that nobody made, and its title must be new.
"""

from collections.abc import Iterator
from itertools import count

from gecko_graph import Toolkit
from gecko_graph.derive.contracts import add_derived
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.values.observation import Observation
from tests.derive.documents import TEXT, document, many, op, thing

PROJECT = thing(["id", "title", "owner"], id=TEXT, title=TEXT, owner=TEXT)
TASK = thing(["id", "project_id", "kind"], id=TEXT, project_id=TEXT, kind=TEXT)
BOARD = thing(["name", "style"], name=TEXT, style=TEXT)
NOTE = thing(["id", "project_id"], id=TEXT, project_id=TEXT)
DOCUMENT = document(
    {
        "/projects": {"get": op("projects", gives=many(PROJECT)),
                      "post": op("begin", body=thing(["title", "owner"], title=TEXT, owner=TEXT), gives=PROJECT,
                                 errors=())},
        "/projects/{project}": {"get": op("project", gives=PROJECT), "delete": op("end", status="204")},
        "/projects/{project}/boards": {"get": op("boards", gives=many(BOARD)),
                                       "post": op("draw", body=BOARD, gives=BOARD)},
        "/projects/{project}/boards/{name}": {"get": op("board", gives=BOARD)},
        "/tasks": {"get": op("tasks", gives=many(TASK), query=[("project_id", "string")]),
                   "post": op("add", body=thing(["project_id", "kind"], project_id=TEXT, kind=TEXT), gives=TASK)},
        "/tasks/{task}": {"get": op("task", gives=TASK)},
        "/notes": {"get": op("notes", gives=many(NOTE)),
                   "post": op("note", body=thing(["project_id"], project_id=TEXT), gives=NOTE)},
        "/notes/{note}": {"get": op("one_note", gives=NOTE)},
    },
)  # fmt: skip


def toolkit() -> Toolkit:
    return add_derived(Toolkit.from_openapi(DOCUMENT))[0]


class Projects:
    """The service; if it `keeps` tasks, begins with a `bare` project, or takes a title `twice`, it is another one."""

    def __init__(self, *, keeps: bool = False, bare: bool = False, twice: bool = False) -> None:
        self.projects, self.tasks, self.boards, self.notes = {}, {}, {}, {}
        self.keeps, self.bare, self.twice, self.numbers = keeps, bare, twice, count(1)

    def __call__(self, tool: str, args: dict) -> tuple[str, object]:
        made = getattr(self, f"_{tool}")(**args)
        return ("error", {"detail": made}) if isinstance(made, str) else ("ok", made)

    def _new(self, there: dict, letter: str, **fields):
        key = f"{letter}-{next(self.numbers)}"
        there[key] = {"id": key, **fields}
        return dict(there[key])

    def _begin(self, title, owner):
        if not self.twice and any(one["title"] == title for one in self.projects.values()):
            return f"a project named {title!r} exists"
        made = self._new(self.projects, "p", title=title, owner=owner)
        self.boards[made["id"]] = {} if self.bare else {"main": {"name": "main", "style": "kanban"}}
        if not self.bare:
            self._new(self.tasks, "t", project_id=made["id"], kind="welcome")
        return made

    def _end(self, project):
        if project not in self.projects:
            return "no such project"
        del self.projects[project], self.boards[project]
        if not self.keeps:
            self.tasks = {key: one for key, one in self.tasks.items() if one["project_id"] != project}
        return None

    def _draw(self, project, name, style):
        self.boards[project][name] = {"name": name, "style": style}
        return {"name": name, "style": style}

    def _project(self, project):
        return self.projects.get(project, "no such project")

    def _projects(self):
        return [*map(dict, self.projects.values())]

    def _boards(self, project):
        return [*self.boards[project].values()] if project in self.boards else "no such project"

    def _board(self, project, name):
        return self.boards.get(project, {}).get(name, "no such board")

    def _tasks(self, project_id=None):
        return [dict(one) for one in self.tasks.values() if project_id in (None, one["project_id"])]

    def _task(self, task):
        return self.tasks.get(task, "no such task")

    def _add(self, project_id, kind):
        return self._new(self.tasks, "t", project_id=project_id, kind=kind)

    def _notes(self):
        return [*map(dict, self.notes.values())]

    def _note(self, project_id):
        return self._new(self.notes, "n", project_id=project_id)

    def _one_note(self, note):
        return self.notes.get(note, "no such note")


def rows(*services: Projects, rounds: int = 12) -> Iterator[Observation]:
    """Yield rows of calls on services, as one thread: in each round a project is begun, used and ended."""
    done = list[Observation]()

    def call(service, tool, **args):
        status, result = service(tool, args)
        done.append(Observation(tool, args, status, result, source="t"))
        return result

    for service in services:
        for number in range(rounds):
            project = call(service, "begin", title=f"a{number}", owner="ann")["id"]
            call(service, "boards", project=project)
            call(service, "tasks", **({"project_id": project} if number % 2 else {}))
            call(service, "begin", title=f"a{number}", owner="ann")
            call(service, "begin", title=f"a{number}", owner="bob")
            task = call(service, "add", project_id=project, kind="own")["id"]
            other = call(service, "begin", title=f"b{number}", owner="ann")["id"]
            call(service, "note", project_id=project)
            call(service, "tasks")
            call(service, "notes")
            call(service, "end", project=project)
            call(service, "task", task=task)
            call(service, "tasks")
            call(service, "notes")
            call(service, "end", project=other)
    return known_by_reads(done, toolkit())
