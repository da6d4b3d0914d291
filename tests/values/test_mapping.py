"""Work on many items: in order, bounded, whatever dies."""

import sys
from collections import deque
from itertools import count, islice

import pytest

from gecko_graph import GeckoError
from gecko_graph.values.mapping import AHEAD, Died, Work, _run, processes, threads
from tests import forked
from tests.cli.command import ENVIRONMENT
from tests.values.tens import Large, Lost, Tens


@pytest.mark.parametrize("how", [map, threads(3), processes(2)], ids=["map", "threads", "processes"])
def test_results_are_in_order_and_what_is_kept_is_built_once_a_worker(how, tmp_path):
    assert list(how(Tens(str(tmp_path)), ([at] for at in range(20, 40)))) == [[at * 10] for at in range(20, 40)]
    assert 1 <= len((tmp_path / "begun").read_text()) <= 2
    with pytest.raises(ValueError, match="thirteen"):
        list(how(Tens(str(tmp_path)), [[20], [13], [21]]))


def test_a_dead_worker_loses_nothing_but_what_kills_it_twice(tmp_path):
    done = processes(2)(Tens(str(tmp_path)), ([at, at + 1] for at in range(0, 12, 2)))
    assert [each for some in done for each in some] == [-7 if at == 7 else at * 10 for at in range(12)]
    found = processes(2)(Lost(str(tmp_path)), [[1], [7], [2]])
    assert next(found) == [10]
    with pytest.raises(GeckoError, match=r"its worker died twice: \[7\]"):
        next(found)


class Killed(Work):
    def begin(self):
        return str

    def lost(self, item):
        return f"lost {item}"


class Fragile:
    """A worker that dies of the item 3, with the results that nobody has taken."""

    def __init__(self, packed):
        self.queue, self.items = deque(), []

    def give(self, item):
        self.items.append(item)

    def take(self):
        if 3 in self.items:
            raise Died
        return str(self.items.pop(0))

    @staticmethod
    def wait(workers):
        return workers[-1:]

    def dismiss(self):
        self.items.clear()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_only_the_item_that_kills_is_lost_if_results_die_with_their_worker(workers):
    found = list(_run(Fragile, Killed(), range(6), workers))
    assert found == ["0", "1", "2", "lost 3", "4", "5"]


def test_a_worker_that_dies_while_it_sends_its_result_is_not_waited_for(tmp_path):
    for after_ms in (10, 30, 50):
        assert [len(each) for each in processes(1)(Large(str(tmp_path)), [after_ms])] == [30_000_000]


def test_what_is_under_way_is_bounded_and_what_cannot_go_to_another_process_is_told(tmp_path):
    taken = []
    found = processes(2)(Tens(str(tmp_path)), ([taken.append(at) or at] for at in count(100)))
    assert len(list(islice(found, 3))) == 3
    assert len(taken) <= 3 + 2 * AHEAD
    found.close()
    work = Tens(str(tmp_path))
    work.folder = lambda: None
    with pytest.raises(GeckoError, match="Tens: it cannot be sent to another process"):
        list(processes(2)(work, [[1]]))


def test_workers_that_cannot_begin_end_the_work(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from tests.values.tens import Tens\nfrom gecko_graph.values.mapping import processes\n"
        "print(list(processes(1)(Tens('.'), [[1]])))\n"
    )
    ran = forked.run([sys.executable, str(program)], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert "workers die before they begin: see what they print; processes() belongs below" in ran.stderr
