"""Tasks made from contracts: each is solved by its solution and by nothing that just misses it."""

import json
import pickle
from collections import Counter
from random import Random

import pytest

from gecko_graph import GeckoError, Models, Scenario, Tool, Toolkit, World, create_conversation
from gecko_graph.conversation.derive import describe_milestones
from gecko_graph.scenario import shipped
from gecko_graph.testing import recorded, scripted
from gecko_graph.training.near import cut, has_idle_write, longest_chain, near_misses, play
from gecko_graph.training.tasks import (
    A_SEQUENCE,
    ASKED,
    KNOBS,
    accepts,
    find_samples,
    hold,
    make_tasks,
    read_tasks,
    save_tasks,
    sequence_of,
)
from gecko_graph.training.vary import rename, vary, vary_state
from gecko_graph.training.walks import Move, Start, ValueSource, Walk
from gecko_graph.training.words import Reference, find_lacks, refer, say
from tests.phone import FOLDER, load
from tests.training.killing import kill_and_go_on
from tests.training.shop import SHOP, made


def begin(state=SHOP.state, tools=SHOP.tools):
    return World(tools, state=state, context=KNOBS)


def move(origin, name, sources=(), /, **args):
    return Move(origin, name, args, {(key,): ValueSource(at, place) for key, at, place in sources})


BUY = move(0, "setCartLine", sku="TEA-100", quantity=2)
ORDER = move(1, "placeOrder")
CANCEL = move(2, "cancelOrder", [("order_id", 1, ("order_id",))], order_id="?")


class TestStates:
    def test_a_key_changes_with_all_that_names_it(self):
        state = {"people": {"p-1": {"name": "Ada"}, "p-2": {"name": "Bo"}}, "boss": "p-1", "all": ["p-1", "p-2"]}
        for at in range(30):
            varied = vary_state(state, Random(at))
            assert {varied["boss"], *varied["all"]} <= varied["people"].keys()
            assert varied["people"][varied["boss"]]["name"] in ("Ada", "Bo")
        assert state["boss"] == "p-1", "the given state stays as it is"

    def test_a_state_that_the_tools_refuse_is_not_taken(self):
        start = World(SHOP.tools, context=KNOBS)
        for at in range(20):
            assert vary(start, SHOP.state, Random(at)).state["customer"]["credit"] >= 0

    @pytest.mark.parametrize(
        ("key", "form"),
        [("HL-200", "HL-"), ("report.txt", ".txt"), ("2027-05-12", "2027-05-12"), ("MUG-BLUE", "-BLUE")],
    )
    def test_another_name_has_the_same_form(self, key, form):
        assert form in rename(key, Random(0))
        assert len(rename("HL-200", Random(0))) == 6


class TestWalks:
    def test_what_is_refused_leaves_nothing(self):
        walk = Walk(begin(), Random(0))
        assert all(walk.move(SHOP.tools["placeOrder"]) is None for _ in range(3))  # the cart is empty
        assert walk.world.log == []
        assert walk.moves == []

    @pytest.mark.parametrize("null", [{}, {"type": ["null", "integer"]}, {"anyOf": [{"type": "null"}]}])
    def test_a_known_value_is_chosen_only_if_it_fits_the_schema(self, null):
        rule = {"type": "integer", "minimum": 0, "maximum": 5}
        rule = {"anyOf": [rule, *null["anyOf"]]} if "anyOf" in null else {**rule, **null}
        effect = {"op": "replace", "path": ["left"], "value": "{{ args.left }}"}
        fill = {"name": "fill", "parameters": {"properties": {"left": rule}, "required": ["left"]}}
        tools = Toolkit.from_tools([fill]).declare(Tool("fill", effect="write", contract={"effects": [effect]}))
        assert all(Walk(begin({"left": 9}, tools), Random(seed)).move(tools["fill"]) for seed in range(20))

    def test_a_walk_is_played_again_from_its_moves(self):
        for at in range(10):
            start = begin()
            walk = Walk(start, Random(at), chained=at % 2 == 0)
            moves = walk.go(3)
            assert all("outcome" in step for step in Start(start).make(walk.moves)[1].values())
            assert all(move in walk.moves for move in moves)
            assert start.log == []

    def test_a_beginning_is_made_once_and_no_walk_sees_another(self, monkeypatch):
        start, calls, real = Start(begin()), [], World.call
        monkeypatch.setattr(World, "call", lambda world, call: calls.append(call["id"]) or real(world, call))
        whole, steps = start.make([BUY, ORDER, CANCEL])
        half, _ = start.make([BUY, ORDER])
        other, _ = start.make([ORDER])
        assert calls == ["call_1", "call_2", "call_3", "call_2"]
        assert [len(each.log) for each in (start.world, half, whole, other)] == [0, 2, 3, 1]
        assert start.make([BUY, ORDER, CANCEL])[1] == steps
        assert len(calls) == 4
        assert steps[2]["call"]["args"] == {"order_id": steps[1]["outcome"]["result"]["order_id"]}
        assert steps[2]["outcome"]["status"] == "ok"


class TestEnds:
    def test_drawn_identifiers_make_no_difference_and_what_they_refer_to_does(self):
        begun = Start(begin())
        whole = play(begun, [BUY, ORDER])
        assert whole.drawn
        other = [BUY, move(7, "placeOrder")]  # another call draws another identifier
        assert whole.is_same(begun, other)[0]
        assert play(begun, other).state != whole.state
        first = [BUY, ORDER, move(3, "setCartLine", sku="COFFEE-500", quantity=1), move(4, "placeOrder")]
        cancel = [move(5, "cancelOrder", [("order_id", at, ("order_id",))], order_id="?") for at in (1, 4)]
        assert not play(begun, [*first, cancel[0]]).is_same(begun, [*first, cancel[1]])[0]

    def test_what_makes_no_difference_is_cut_and_what_undoes_itself_is_cut_whole(self):
        idle = [move(0, "showCart"), move(1, "setCartLine", sku="TEA-100", quantity=1)]
        kept, pairs = cut(Start(begin()), [*idle, move(2, "setCartLine", sku="TEA-100", quantity=2)])
        assert [each.origin for each in kept] == [2]
        assert pairs == set()
        out = move(1, "setCartLine", sku="TEA-100", quantity=0)
        assert cut(Start(begin()), [BUY, out])[0] == []

    def test_a_row_that_is_added_found_and_deleted_is_of_no_use(self):
        """Without the row another one is found: what is made anew without the first call ends otherwise."""
        word = {"type": "object", "properties": {"row": {"type": "string"}}}
        path, first = ["rows", "{{ args.row }}"], "{{ sorted(state.rows.keys())[0] }}"
        contracts = {
            "add_row": {"effects": [{"op": "add", "path": path, "value": 1}]},
            "find_row": {"returns": {"row": first}},
            "delete_row": {
                "requires": [{"check": "args.row in state.rows", "error": "there is no such row"}],
                "effects": [{"op": "remove", "path": path}],
            },
        }
        effects = {"add_row": "write", "find_row": "read", "delete_row": "write"}
        tools = Toolkit.from_tools(
            Tool({"name": name, "parameters": word}, effect=effects[name], contract=one)
            for name, one in contracts.items()
        )
        start = Start(begin({"rows": {"b": 1, "c": 1}}, tools))
        moves = [
            move(0, "add_row", row="a"),
            move(1, "find_row"),
            move(2, "delete_row", [("row", 1, ("row",))], row="a"),
        ]
        assert cut(start, moves)[0] == moves
        assert has_idle_write(start, moves)
        assert not has_idle_write(start, moves[:1])

    def test_calls_that_need_each_other_are_a_chain(self):
        kept, pairs = cut(Start(begin()), [BUY, ORDER, CANCEL])
        assert len(kept) == 3
        assert pairs >= {(0, 1), (1, 2)}
        assert longest_chain(pairs) == 3
        assert longest_chain({(0, 2), (1, 2)}) == 2
        assert longest_chain(set()) == 1


class TestWords:
    def refer(self, *moves):
        return refer(SHOP.state, moves, Start(begin()).make(moves)[1])

    def test_a_drawn_value_is_named_by_its_step(self):
        named, references = self.refer(BUY, ORDER, CANCEL)
        assert references == {(2, ("order_id",)): Reference("step", 1, "order_id")}
        words = say(SHOP.tools, named, references)
        assert "as given by step 2" in words
        assert "?" not in words

    def test_a_value_that_was_looked_up_by_what_stands_beside_it(self):
        place = ("products", 2, "sku")
        named, references = self.refer(
            move(0, "findProducts"), move(1, "setCartLine", [("sku", 0, place)], sku="?", quantity=1)
        )
        assert references == {(1, ("sku",)): Reference("row", 0, "sku", "name", "House coffee, 500 g")}
        assert "COFFEE-500" not in say(SHOP.tools, named, references)

    def test_what_two_rows_have_in_common_names_none(self):
        state = {**SHOP.state, "products": {**SHOP.state["products"], "TEA-101": SHOP.state["products"]["TEA-100"]}}
        moves = [
            move(0, "findProducts"),
            move(1, "setCartLine", [("sku", 0, ("products", 3, "sku"))], sku="TEA-100", quantity=1),
        ]
        named, references = refer(state, moves, Start(begin(state)).make(moves)[1])
        assert references == {}
        assert not named[1].sources

    def test_words_hold_each_value_and_no_tool(self):
        names = ["send_mail", "find"]
        assert find_lacks('send 12 to "Bo"', ["Bo", 12], names) == []
        assert find_lacks('send 123 to "Bo"', ["Bo", 12], names) == ["12"]
        assert find_lacks("use send_mail", [], names) == ["send_mail"]
        assert find_lacks("Find it", [], names) == ["find"]
        assert find_lacks('a folder "find"', ["find"], names) == []


class TestTasks:
    def test_the_solution_is_accepted_as_a_case_is(self):
        told = [each for each in made() if "as given by" not in each.words]  # a script cannot take what was drawn
        for task in told[:3]:
            agent = scripted(
                *({"call": each["name"], "args": each["args"]} for each in task.solution), {"say": "Done."}
            )
            case = Scenario.from_dict({**task.content, "tools": SHOP.tools.to_openapi()})
            held = create_conversation(agent, scenario=case).invoke({})
            assert held["score"]["status"] == "passed"

    def test_another_end_is_refused(self):
        assert len({task.words for task in made()}) == len(made()) == 12, "none twice, and few of a kind"
        assert max(Counter(map(sequence_of, made())).values()) <= A_SEQUENCE
        for task in made():
            begun = Start(begin(task.state))
            moves = [Move(at, each["name"], each["args"]) for at, each in enumerate(task.solution)]
            assert accepts(task, begun, moves)
            for near in (moves[1:], moves[:-1], [*moves, move(99, "setCartLine", sku="X-1", quantity=1)]):
                if not play(begun, moves).is_same(begun, near)[0]:
                    assert not accepts(task, begun, near)

    def test_a_twin_of_what_is_deleted_is_another_end(self):
        phone = load("wifi-off")
        rows = phone.state["reminders"]
        state = {**phone.state, "reminders": {**rows, "r-9": rows["r-3"]}}
        start = Start(begin(state, phone.tools))
        adds = move(0, "add_reminder", text=rows["r-3"]["text"], due=rows["r-3"]["due"])
        deletes, other = (move(1, "delete_reminder", id=key) for key in ("r-3", "r-9"))
        conversation = hold(start, "Please.", [adds, deletes])
        written = describe_milestones(phone.tools, conversation, clock_stands=True)
        data = {"version": 1, "name": "twins", "tools": "-", "user": {"goal": "Please."}, "state": state}
        task = Scenario.from_dict({**data, "milestones": written}, tools=phone.tools)
        assert accepts(task, start, [adds, deletes])
        assert not accepts(task, start, [adds, other])

    def test_each_argument_is_changed_in_a_near_miss(self):
        """What a goal leaves free, as it was drawn, is found whichever argument gives it."""
        walk = [BUY, ORDER, CANCEL]
        misses = [miss for miss in near_misses(Start(begin()), walk, set(), Random(0)) if len(miss) == len(walk)]
        pairs = [(one.origin, key) for miss in misses for one in miss for key in one.args if one not in walk]
        assert {*pairs} == {(0, "sku"), (0, "quantity"), (2, "order_id")}

    def test_what_a_worker_is_told_of_full_sequences_changes_no_task(self, monkeypatch):
        monkeypatch.setattr("gecko_graph.training.tasks.A_SEQUENCE", 1)
        told = []

        def late(work, items):
            """As workers that were given all their numbers at the beginning."""
            for at, full in items:
                told.append(full)
                yield pickle.loads(pickle.dumps(work))((at, ()))  # as if it was sent to a process

        found = [[each.content for each in make_tasks(SHOP.tools, [SHOP.state], 3, map=by)] for by in (map, late)]
        assert found[0] == found[1]
        assert len(told[-1]) == 2

    def test_a_seed_decides_and_a_number_does_not(self):
        assert next(make_tasks(SHOP.tools, [SHOP.state], 3)).content == made(1)[0].content
        assert next(make_tasks(SHOP.tools, [SHOP.state], 1, seed=2)).words != made(1)[0].words

    def test_samples_are_the_steps_of_the_solution(self):
        task = made(1)[0]
        rows = find_samples(task)
        assert [row["label"] for row in rows[:-1]] == [
            [{"name": each["name"], "arguments": each["args"]}] for each in task.solution
        ]
        assert (rows[-1]["label"], rows[-1]["text"]) == ([], "Done.")
        assert [len(row["messages"]) for row in rows] == [1 + 2 * at for at in range(len(rows))]
        assert all(
            row["goal"]["milestones"] and row["state"] == task.state and "function" in row["tools"][0] for row in rows
        )
        assert json.loads(json.dumps(rows)) == rows

    def test_a_model_puts_it_in_other_words(self):
        plain = made(1)[0]
        better, before = f"Hello! {plain.words}", ASKED * (int(plain.name.rpartition("-")[2]) - 1)
        for replies, words in (
            ([better], better),
            (["Buy something", better], better),
            (["Buy something", "Please placeOrder"], plain.words),
        ):
            given = [*[None] * before, *({"message": each} for each in replies)]
            model = Models(sample_writer=recorded(sample_writer=given))
            assert next(make_tasks(SHOP.tools, [SHOP.state], 1, model=model)).words == words

    def test_mistakes_are_told_and_tools_of_which_no_task_can_be_made_end(self, monkeypatch):
        with pytest.raises(GeckoError, match="state"):
            list(make_tasks(SHOP.tools, [], 1))
        reads = SHOP.tools.select(names=["showCart", "findProducts"])
        with pytest.raises(GeckoError, match="none changes"):
            list(make_tasks(reads, [SHOP.state], 1))
        monkeypatch.setattr("gecko_graph.training.tasks.PATIENCE", 5)
        schema = {"type": "object", "properties": {}}
        tools = Toolkit.from_tools([{"name": "wait", "description": "Wait.", "parameters": schema}])
        with pytest.raises(GeckoError, match="derive SPEC -o FILE"):
            list(make_tasks(tools, [{}], 5))
        assert list(make_tasks(tools.declare(Tool("wait", simulate=lambda state: None)), [{}], 5)) == []


class TestFolder:
    def test_killed_anywhere_it_ends_in_the_same_bytes(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gecko_graph.training.tasks.SHARD", 1)
        document = (FOLDER.parent / "shop" / "shop.openapi.yaml").read_text()

        def save(folder):
            save_tasks(folder, SHOP.tools, [SHOP.state], 2, tools="shop.yaml")

        assert kill_and_go_on(tmp_path, save, range(2, 99, 9)) > 8
        found = [task.content for task in read_tasks(tmp_path / "whole", SHOP.tools)]
        assert found == [{**task.content, "tools": "shop.yaml"} for task in made(2)]
        (tmp_path / "whole" / "shop.yaml").write_text(document)
        assert Scenario.load(next((tmp_path / "whole").glob("*.gecko.yaml"))).goal.milestones

    def test_shards_hold_the_same_rows_in_folders_with_a_manifest(self, tmp_path):
        for name, shards in (("whole", None), ("parts", 3)):
            save_tasks(tmp_path / name, SHOP.tools, [SHOP.state], 4, tools="shop.yaml", shards=shards)
        for name in ("tasks", "samples"):
            folder = tmp_path / "parts" / name
            known = json.loads((folder / "manifest.json").read_text())["files"]
            assert [each["file"] for each in known] == [f"part-{at:05}-of-00003.jsonl" for at in range(3)]
            texts = [(folder / each["file"]).read_text() for each in known]
            key = "tasks" if name == "tasks" else "rows"
            assert [each["counts"] for each in known] == [*({key: text.count("\n")} for text in texts[:2]), None]
            assert "".join(texts) == (tmp_path / "whole" / f"{name}.jsonl").read_text()
        assert len(sorted((tmp_path / "parts").glob("*.gecko.yaml"))) == 4

    def test_a_complete_shard_is_not_made_again(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gecko_graph.training.tasks.SHARD", 2)
        more = {"tools": "shop.yaml", "shards": 2}

        def stop(done, wanted, tried):
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            save_tasks(tmp_path, SHOP.tools, [SHOP.state], 4, progress=stop, **more)
        walks = []
        save_tasks(tmp_path, SHOP.tools, [SHOP.state], 4, progress=lambda *at: walks.append(at[2]), **more)
        assert min(walks) > int(made(2)[1].name.rpartition("-")[2])

    def test_another_folder_for_other_tools(self, tmp_path):
        save_tasks(tmp_path, SHOP.tools, [SHOP.state], 1, tools="shop.yaml")
        with pytest.raises(GeckoError, match="another folder"):
            save_tasks(tmp_path, SHOP.tools, [SHOP.state], 1, tools="shop.yaml", seed=2)
        with pytest.raises(GeckoError, match=r"no tasks\.jsonl"):
            read_tasks(tmp_path / "none", SHOP.tools)

    def test_an_example_can_be_walked(self):
        scenario = shipped("files")
        (task,) = make_tasks(scenario.tools, [scenario.state], 1)
        assert task.solution
