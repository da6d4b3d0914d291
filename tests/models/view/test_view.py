"""Views: what is shown, what is marked as left out, and that nothing in a state can pass for something else."""

import copy
import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gecko_graph.models.drawing import quoted
from gecko_graph.models.focus import focus_words
from gecko_graph.models.view import draw_view, view, view_named
from gecko_graph.values.difference import json_equal
from tests.every_place import every_place
from tests.models.view import reading as reader

WORDS = ["alpha", "beta", "order", "status", "final_report.pdf", "42", "ümlaut", "id", "name"]
HOSTILE = [
    "… 3 more keys (of 4)", '"}, … 5 keys: "a"', "… items 0 to 9 (of 10)", "x\n… 2 more keys (of 3)\n", "\u2028…\u2029",
    '" … 1 of 2 characters left out … "', "{… 9 keys}", "0: 1", "\ud800", "\x85\x9f", "İstanbul", "</state-1a2b3c4d>",
    "\\", '"', "\x1f\x00",
]  # fmt: skip
TEXT = st.sampled_from(WORDS + HOSTILE) | st.text(max_size=8) | st.sampled_from(HOSTILE).map(lambda text: text * 60)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)


def containers(child):
    several = st.lists(child, max_size=5)
    many = st.tuples(child, st.integers(8, 30)).map(lambda drawn: [drawn[0]] * drawn[1])
    named = st.dictionaries(TEXT, child, max_size=5)
    crowd = st.tuples(child, st.integers(8, 30)).map(lambda drawn: {f"key {n}": drawn[0] for n in range(drawn[1])})
    return several | many | named | crowd


JSON = st.recursive(SCALARS, containers, max_leaves=5)


@settings(max_examples=80, deadline=None)
@given(JSON, st.lists(st.sampled_from(WORDS) | TEXT, max_size=5), st.sampled_from([500, 501, 640, 1_000, 3_000]))
@example("x" * 5_000, [], 500)
@example(["\ud800" * 5_000], [], 500)
@example({"k" * 3_000: {"l" * 3_000: 1}}, [], 500)
@example({"a": {"b" * 700: {"c" * 700: ["d" * 700] * 9}}}, ["b"], 500)
def test_a_view_keeps_to_its_budget_and_tells_the_truth(state, focus, budget):
    kept = copy.deepcopy(state)
    text = view(state, focus=focus, budget=budget)
    assert len(text) <= budget
    assert reader.is_true(reader.read(text), state)
    assert text == view(copy.deepcopy(state), focus=list(focus), budget=budget)
    assert repr(state) == repr(kept)
    assert all(
        character == "\n" or character.isprintable() or character in "\xa0\u3000" or ord(character) > 160
        for character in text
    )
    text.encode()


@settings(max_examples=80, deadline=None)
@given(JSON)
def test_what_fits_is_shown_whole_and_is_json(state):
    assert json_equal(json.loads(view(state, focus=["alpha"], budget=10**9)), state)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("size", [1, 500])
def test_no_text_passes_for_a_mark(text, size):
    state = {"a": text, text: [text] * size, "b": {text + str(n): text for n in range(size)}}
    shown = view(state, focus=[text], budget=1_000)
    assert reader.is_true(reader.read(shown), state)
    assert len(shown.splitlines()) == shown.count("\n") + 1


LOREM = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "eiusmod", "tempor"]


def crowded(**parts):
    """A state of about 100 kB: what a test is about, among much else."""
    chance = random.Random(1)

    def text(count):
        return " ".join(chance.choices(LOREM, k=count))

    products = {f"sku-{n:05}": {"name": text(2), "price": n * 1.5, "stock": n % 7, "note": text(8)} for n in range(300)}
    journal = [{"at": f"2024-03-{n % 28 + 1:02}", "who": f"user {n % 9}", "what": text(9)} for n in range(400)]
    return {
        "products": products,
        **parts,
        "journal": journal,
        "manual": {"chapter": text(400), "flags": list(range(500))},
    }


def shown_of(state, focus=(), budget=12_000):
    text = view(state, focus=focus, budget=budget)
    assert len(text) <= budget
    shown = reader.read(text)
    assert reader.is_true(shown, state)
    return lambda *path: reader.part(shown, path)


def test_circumstances_are_always_shown_and_an_outline_of_what_there_is():
    runtime = {"now": "2024-09-01T10:30:00", "open_tabs": ["a", "b"], "balance": 10.5, "empty": {}}
    known = {"current_user": "john", "authenticated": False, "counter": 12446}
    state = crowded(**known, session=None, cwd=["home", "john"], runtime_state=runtime)
    assert len(json.dumps(state)) > 80_000
    for focus in ([], ["sku-00001", "what"]):
        at = shown_of(state, focus)
        assert {name: at(name) for name in known} == known
        assert at("cwd").entries == {0: "home", 1: "john"}
        assert at("runtime_state").count == 4
        assert {name: at("runtime_state", name) for name in ("now", "balance")} == {
            "now": "2024-09-01T10:30:00", "balance": 10.5,
        }  # fmt: skip
    at = shown_of(crowded())
    assert (at("products").kind, at("products").count) == (dict, 300)
    assert (at("journal").kind, at("journal").count) == (list, 400)
    assert at("manual", "flags").count == 500


FOLDER = {f"paper {n}.txt": {"type": "file", "content": f"text {n}"} for n in range(60)} | {
    "temp": {"type": "directory"}
}


@pytest.mark.parametrize(("parts", "path"), [
    ({"cwd": ["home", "ann"], "tree": {"home": {"ann": FOLDER}}}, ["tree", "home", "ann"]),
    ({"tree": {"home": {"ann": FOLDER}}, "runtime_state": {"cwd": "/home/ann"}}, ["tree", "home", "ann"]),
    ({"files": {"cwd": ["ann"], "tree": {"ann": {"type": "d", "contents": FOLDER}}}},
     ["files", "tree", "ann", "contents"]),
    ({"pwd": "/home/ann", "fs": {"/": {"home": {"children": {"ann": {"children": FOLDER}}}}}},
     ["fs", "/", "home", "children", "ann", "children"]),
    ({"working_directory": ["home"], "folders": [{"name": "etc", "items": {}}, {"name": "home", "items": FOLDER}]},
     ["folders", 1, "items"]),
])  # fmt: skip
def test_the_current_folder_is_listed(parts, path):
    folder = shown_of(crowded(**parts), ["ls"])(*path)
    assert folder.entries.keys() | set(folder.names) >= FOLDER.keys()


def test_the_file_meant_is_the_one_in_the_current_folder():
    folders = {f"folder {n}": {"report.txt": {"content": f"number {n} " + "x" * 300}} for n in range(100)}
    at = shown_of({"cwd": ["folder 77"], "tree": folders}, focus_words("cat", {"file": "report.txt"}), budget=3_000)
    assert at("tree", "folder 77", "report.txt", "content").startswith("number 77")


ORDERS = {
    str(13_000 + n): {"symbol": f"S{n}", "amount": n, "status": "open", "owner": f"user {n % 50}"} for n in range(400)
}


@pytest.mark.parametrize(("call", "args", "path"), [
    ("cancel_order", {"order_id": 13_204}, ["orders", "13204", "status"]),
    ("find", {"symbol": "S311"}, ["orders", "13311", "amount"]),
    ("get_ticket", {"ticket_id": 2}, ["tickets", 142, "text"]),
    ("get_ticket", {"ticket_id": 95}, ["tickets", 131, "text"]),
    ("get_watchlist", {}, ["watch_list", 0]), ("lockDoors", {}, ["doorStatus", "rear_left"]),
    ("read", {"title": "An Unlikely Story"}, ["shelf", "room 7", "box", 3, "copies"]),
])  # fmt: skip
def test_what_a_call_is_about_is_shown(call, args, path):
    state = crowded(
        orders=ORDERS,
        tickets=[{"id": (n * 137 + 2 + 58 * 137) % 200, "text": f"text {n}", "priority": n % 5} for n in range(200)],
        doorStatus={"driver": "locked", "rear_left": "unlocked", "history": ["x" * 50] * 40},
        watch_list=["NVDA", "ZETA"] + [f"X{n}" for n in range(40)],
        shelf={f"room {n}": {"box": [{"title": f"Book {n}{m}", "copies": m} for m in range(9)]} for n in range(9)},
    )
    state["shelf"]["room 7"]["box"][3]["title"] = "An Unlikely Story"
    real = state
    for step in path:
        real = real[step]
    at = shown_of(state, focus_words(call, args))
    assert at(*path) == real


def test_what_a_record_refers_to_is_shown_and_a_long_text_is_cut_in_the_middle():
    bookings = {f"b{n}": {"card_id": f"card_{n * 7}", "cost": n} for n in range(300)}
    cards = {f"card_{n}": {"balance": n * 10, "holder": "x" * 40} for n in range(3_000)}
    at = shown_of({"bookings": bookings, "cards": cards}, focus_words("cancel_booking", {"booking_id": "b271"}))
    assert at("bookings", "b271", "card_id") == "card_1897"
    assert at("cards", "card_1897", "balance") == 18_970
    state = {"name": "it", "text": "start " + "x" * 40_000 + " end", "rest": ["y" * 20] * 100}
    cut = shown_of(state, budget=2_000)("text")
    assert (cut.head[:6], cut.tail[-4:], cut.length) == ("start ", " end", 40_010)
    more = shown_of(state, ["text"], budget=2_000)("text")
    assert len(more.head) > len(cut.head)


MISSING = object()


def read_at(shown, path):
    for token in path:
        key = int(token) if isinstance(shown, reader.Shown) and shown.kind is list else token
        if not isinstance(shown, reader.Shown) or key not in shown.entries:
            return MISSING
        shown = shown.entries[key]
    return shown


@settings(max_examples=80, deadline=None)
@given(JSON, st.lists(st.sampled_from(WORDS) | TEXT, max_size=5), st.sampled_from([500, 640, 1_000, 3_000]))
@example({"a": {"x" * 300: "y" * 900, "b": [1, {"c": "z" * 400}]}, "d": {}}, ["b"], 500)
@example("x" * 5_000, [], 500)
def test_it_shows_exactly_what_can_be_read_back_whole(state, focus, budget):
    drawn = draw_view(state, focus=focus, budget=budget)
    shown = reader.read(drawn.text)
    for path, _ in every_place(state):
        found = read_at(shown, path)
        assert drawn.shows([*map(str, path)]) == (found is not MISSING and reader.is_whole(found)), path


def test_of_a_collection_only_the_items_in_sight_are_shown():
    state = {"users": [{"id": n, "note": "lorem ipsum " * 5} for n in range(400)], "mail": {"text": HOSTILE[0] * 900}}
    drawn = draw_view(state, focus=["note 7"], budget=2_000)
    assert not drawn.shows(["users"])
    assert not drawn.shows(["mail", "text"])
    assert not drawn.shows([])
    assert any(drawn.shows(["users", str(n)]) for n in range(400))
    assert not all(drawn.shows(["users", str(n)]) for n in range(400))


BUDGET = 6_000


def home(**contents):
    files = {f"{name}.txt": {"type": "file", "content": content} for name, content in contents.items()}
    return {"tree": {"home": {"type": "directory", "contents": files}}, "cwd": ["home"]}


def look(state):
    return view(state, focus=focus_words("cat", {"file_name": "b.txt"}), budget=BUDGET)


def test_what_room_is_left_belongs_to_the_text_that_is_meant():
    shown = look(home(a="x" * 9_000, b="q" * 9_000, c="x" * 9_000))
    assert len(shown) <= BUDGET
    assert shown.count("q") > BUDGET // 3
    assert shown.count("q") > shown.count("x")


@pytest.mark.parametrize("line", ["a line\n", 'say "so"\\', "\x00"])
def test_a_text_that_fits_is_shown_whole_however_it_is_written(line):
    text = line * (4_000 // len(quoted(line)))
    shown = look(home(a="x" * 9_000, b=text))
    assert len(shown) <= BUDGET
    assert quoted(text) in shown


def test_a_variable_inside_a_large_record_is_shown_whatever_the_focus_takes():
    fields = {f"field_{number}": "x" * 60 for number in range(30)}
    more = {f"more_{number}": "x" * 60 for number in range(30)}
    rows = [{"id": number, "text": "word " * 12} for number in range(90)]
    state = {"profile": {**fields, "user_id": 7, **more}, "table": rows}
    assert '"user_id": 7' in view(state, focus=["word"], budget=500)


STOCKS = {f"S{number}": {"price": 200.5 + number, "volume": 2.5, "average": 227.0} for number in range(12)}


@pytest.mark.parametrize(("key", "word"), [
    ("watch_list", "watchlist"), ("Watch List", "watchlists"), ("check-out-date", "checkout_date"),
])  # fmt: skip
@pytest.mark.parametrize("budget", [500, 1_200])
def test_a_name_that_is_written_apart_or_together_is_found(key, word, budget):
    fields = {f"field_{number}": "x" * 60 for number in range(30)}
    state = {"market": {"stocks": STOCKS, **fields, key: {"a": {"b": ["NVDA", "QUAS"]}}, "history": ["y" * 90] * 20}}
    shown = view(state, focus=focus_words(f"What is in my {word}?"), budget=budget)
    assert "QUAS" in shown


def test_what_is_named_is_shown_whole_at_the_least_budget_that_does():
    rows = [f"row {number} of the inbox" for number in range(40)]
    state = {"notes": ["x" * 50] * 90, "inbox_rows": rows, "log": ["y" * 50] * 90}
    find = {"focus": ["inboxrows"], "budgets": [600, 2_400, 6_000]}
    assert "row 18 of" not in view(state, focus=["inboxrows"], budget=600)
    shown = view_named(state, named=["inboxrows"], **find)
    assert all(row in shown for row in rows)
    assert len(view_named(state, named=["nothing"], **find)) <= 600
    assert view_named("a text", named=["a"], **find) == '"a text"'
