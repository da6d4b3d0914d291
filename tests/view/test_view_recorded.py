"""What a view holds of what real tools read and change.

The recorded ground truth (2,323 calls of seven tools' classes) is replayed call by call, each state padded to 100 kB:
many plausible neighbours in every collection and every folder, before and after the real ones, the same file names
elsewhere, unrelated data beside. A view for the call must hold every place that the call changes, with its value (of
what is added, the container), and every value of the state that the result repeats.

Here every 24th task runs; `VIEW_EVERY=1` runs them all, and `-s` prints the figures.
"""

from __future__ import annotations

import functools
import json
import os
import random
import string

import pytest

from gecko_graph.models.view.view import focus_words, view
from gecko_graph.values.patch import apply_patch, json_equal, tokens

NAMES = ["alice", "bob", "carla", "dmitri", "elena", "farid", "grace", "hiro", "ines", "jonas", "kira", "liam", "mona"]
NOUNS = [
    "report",
    "budget",
    "notes",
    "draft",
    "summary",
    "plan",
    "log",
    "invoice",
    "review",
    "minutes",
    "data",
    "results",
]
VERBS = ["update", "check", "send", "archive", "move", "copy", "compare", "order", "book", "cancel", "refund"]
WORDS = [*NOUNS, *VERBS, *NAMES, "the", "a", "and", "of", "for", "with"]
KINDS = ["txt", "pdf", "csv", "md", "docx", "log"]
AIRPORTS = ["LAX", "SFO", "JFK", "RMS"]
SIZE = 100_000
EVERY = int(os.environ.get("VIEW_EVERY", "24"))


def sentence(chance, count):
    return " ".join(chance.choices(WORDS, k=count)).capitalize()


def letters(chance, count):
    return "".join(chance.choices(string.ascii_uppercase, k=count))


def day(chance):
    return f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def ticket(r, n):
    return {"id": 40 + n, "title": sentence(r, 3), "description": sentence(r, 9), "status": r.choice(["Open", "Done"]),
            "priority": r.randint(1, 5), "created_by": r.choice(NAMES)}  # fmt: skip


def tweet(r, n):
    return str(40 + n), {"id": 40 + n, "username": r.choice(NAMES), "content": sentence(r, 9),
                         "tags": ["#" + r.choice(NOUNS)], "mentions": ["@" + r.choice(NAMES)]}  # fmt: skip


def order(r, n):
    return str(13_000 + n), {"symbol": letters(r, 4), "price": round(r.uniform(5, 900), 2), "num_shares": n % 500,
                             "status": r.choice(["Open", "Pending", "Completed"]), "order_type": "Buy"}  # fmt: skip


def card(r, n):
    name = f"card_{r.randint(10_000, 99_999)}"
    return name, {"card_number": f"{n}-1111", "cardholder_name": r.choice(NAMES), "balance": float(n)}


def booking(r, n):
    return str(4_000_000 + n), {"card_id": f"card_{r.randint(10_000, 99_999)}", "travel_date": day(r),
                                "travel_from": r.choice(AIRPORTS), "travel_to": r.choice(AIRPORTS),
                                "travel_class": "economy", "travel_cost": float(r.randint(100, 9000))}  # fmt: skip


NEIGHBOURS = {
    ("TicketAPI", "ticket_queue"): ticket,
    ("TwitterAPI", "tweets"): tweet,
    ("TwitterAPI", "comments"): lambda r, n: (str(40 + n), [{"username": r.choice(NAMES), "comment": sentence(r, 6)}]),
    ("TwitterAPI", "retweets"): lambda r, n: (f"{r.choice(NAMES)}_{n}", [r.randint(0, 200) for _ in range(3)]),
    ("TwitterAPI", "following_list"): lambda r, n: f"{r.choice(NAMES)}{n}",
    ("MessageAPI", "user_map"): lambda r, n: (f"{r.choice(NAMES).capitalize()} {n}", f"USR{100 + n}"),
    ("MessageAPI", "inbox"): lambda r, n: {f"USR{100 + r.randint(0, 60)}": sentence(r, 9)},
    ("TradingBot", "orders"): order,
    ("TradingBot", "stocks"): lambda r, n: (
        letters(r, 4),
        {"price": round(r.uniform(5, 900), 2), "volume": 1.5, "MA(5)": 9.5},
    ),
    ("TradingBot", "watch_list"): lambda r, n: letters(r, 5),
    ("TradingBot", "transaction_history"): lambda r, n: {"type": "deposit", "amount": float(n), "timestamp": day(r)},
    ("TravelAPI", "credit_card_list"): card,
    ("TravelAPI", "booking_record"): booking,
}
SHORT_LISTS = {"watch_list", "following_list"}
ANSWERS_FROM_ELSEWHERE = {"get_available_stocks", "view_messages_sent"}
"""The first reads a table inside its class, the second lists a whole collection, which no view holds."""


def file(chance):
    return {"type": "file", "content": "\n".join(sentence(chance, 7) for _ in range(chance.randint(1, 4)))}


def file_name(chance):
    ending = chance.choice(["", "_v2", "_final", f"_{chance.randint(2018, 2025)}", f"-{chance.choice(NAMES)}"])
    return f"{chance.choice(NOUNS)}{ending}.{chance.choice(KINDS)}"


def folder(chance):
    return {"type": "directory", "contents": {file_name(chance): file(chance) for _ in range(chance.randint(2, 6))}}


def unrelated(chance, size):
    """Data of no tool, near the state's root."""
    settings = {
        f"{chance.choice(NOUNS)}_{chance.choice(VERBS)}_{n}": chance.choice([True, 3, "auto"]) for n in range(25)
    }
    data = {"catalog": {}, "settings": settings, "audit_log": [], "knowledge_base": {}}
    while len(json.dumps(data)) < size:
        for _ in range(5):
            n = len(data["catalog"])
            data["catalog"][f"sku-{n:05}"] = {"name": sentence(chance, 2), "price": n % 90, "stock": n % 50}
            data["audit_log"].append({"at": day(chance), "who": chance.choice(NAMES), "what": sentence(chance, 5)})
        article = {"title": sentence(chance, 4), "text": sentence(chance, 80), "tags": chance.sample(NOUNS, 3)}
        data["knowledge_base"][f"article {n}"] = article
    return data


class Padding:
    """The neighbours of one task's states: the same ones at every call."""

    def __init__(self, state, seed):
        chance = random.Random(seed)
        self.seed = seed
        self.kinds = [kind for kind in NEIGHBOURS if kind[1] in state.get(kind[0], {})]
        files = state.get("GorillaFileSystem", {}).get("tree")
        own = bool(self.kinds or files)
        self.beside = unrelated(chance, SIZE // 3 if own else SIZE - len(json.dumps(state)))
        share = (SIZE - len(json.dumps(self.beside)) - len(json.dumps(state))) // (
            len(self.kinds) + (4 if files else 0) or 1
        )
        self.around = {kind: self.make(chance, kind, 600 if kind[1] in SHORT_LISTS else share) for kind in self.kinds}
        self.in_folder = max(1, share * 4 // (count_folders(files or {}) + 2) // 640)

    @staticmethod
    def make(chance, kind, size):
        made = []
        while size > 0:
            made.append(NEIGHBOURS[kind](chance, len(made)))
            size -= len(json.dumps(made[-1])) + 2
        cut = chance.randint(len(made) // 3, 2 * len(made) // 3)
        return made[:cut], made[cut:]

    def pad(self, state):
        padded = {key: self.beside[key] for key in ("catalog", "settings")}
        padded |= {name: self.pad_class(name, part) for name, part in state.items()}
        return padded | {key: self.beside[key] for key in ("audit_log", "knowledge_base")}

    def pad_class(self, name, part):
        part = dict(part)
        for kind, (first, last) in self.around.items():
            if kind[0] == name:
                real = part[kind[1]]
                if isinstance(real, list):
                    part[kind[1]] = [*first, *real, *last]
                else:
                    part[kind[1]] = {**without(first, real), **real, **without(last, real)}
        if name == "GorillaFileSystem":
            other = {"type": "directory", "contents": self.files(("other",)) | self.same_names(part["tree"])}
            part["tree"] = {"other_home": other, **self.pad_tree(part["tree"], ())}
        return part

    def pad_tree(self, tree, path):
        around = list(without(self.files(path).items(), tree).items())
        half = len(around) // 2
        real = {
            name: item
            if item["type"] == "file"
            else {**item, "contents": self.pad_tree(item["contents"], (*path, name))}
            for name, item in tree.items()
        }
        return {**dict(around[:half]), **real, **dict(around[half:])}

    @functools.cache  # noqa: B019 - a padding lives as long as the test of its task
    def files(self, path):
        chance = random.Random(f"{self.seed}{path}")
        made = {}
        for _ in range(self.in_folder):
            made[f"{chance.choice(NOUNS)}s_{chance.randint(100, 999)}"] = folder(chance)
            made[file_name(chance)] = file(chance)
        return made

    def same_names(self, tree):
        chance = random.Random(self.seed)
        return {name: file(chance) for name in sorted(set(names_of(tree))) if chance.random() < 0.3}

    def place(self, path):
        """Where a place of the real state is in the padded one."""
        first = self.around.get(tuple(path[:2]), ([], []))[0]
        if len(path) < 3 or not first or not isinstance(first[0], (dict, str)):
            return path
        return [*path[:2], str(int(path[2]) + len(first)), *path[3:]]


def without(pairs, real):
    return {key: value for key, value in pairs if key not in real}


def count_folders(tree):
    return sum(1 + count_folders(item["contents"]) for item in tree.values() if item["type"] == "directory")


def names_of(tree):
    for name, item in tree.items():
        yield name
        if item["type"] == "directory":
            yield from names_of(item["contents"])


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield list(path), value
    for key, item in items or ():
        yield from leaves(item, (*path, str(key)))


def keys(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(value, dict):
            yield list(path), key
        yield from keys(item, (*path, str(key)))


def at(document, path):
    for token in path:
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


class Check:
    """Whether a view holds what one call reads and changes."""

    def __init__(self, reader, shown, padding):
        self.reader, self.shown, self.padding = reader, shown, padding

    def lacks(self, state, padded, step):
        part = {step["class"]: state[step["class"]]} if step["class"] in state else {}
        if "cwd" in part.get("GorillaFileSystem", {}) and not self.holds(padded, ["GorillaFileSystem", "cwd"]):
            return "the current folder"
        for operation in step["patch"]:
            lack = self.lacks_change(padded, operation)
            if lack:
                return lack
        if step["patch"] or step["call"]["name"] in ANSWERS_FROM_ELSEWHERE:
            return None
        return next(
            (f"read {value!r}" for _, value in leaves(step["result"]) if not self.holds_read(part, value)), None
        )

    def lacks_change(self, padded, operation):
        path = self.padding.place(tokens(operation["path"]))
        source = self.padding.place(tokens(operation.get("from", operation["path"])))
        if operation["op"] != "add" and not self.holds(padded, source):
            return f"changed {source}"
        parent = self.reader.part(self.shown, path[:-1])
        seen = isinstance(parent, self.reader.Shown) and (parent.entries or parent.names or not parent.count)
        return None if seen else f"the container of {path}"

    def holds(self, padded, path):
        real, shown = at(padded, path), self.reader.part(self.shown, path)
        if isinstance(real, (dict, list)) and len(json.dumps(real)) > 1_500:
            return isinstance(shown, self.reader.Shown) and bool(shown.entries or shown.names)
        return real is None or (shown is not None and self.reader.is_whole(shown) and self.reader.is_true(shown, real))

    def holds_read(self, part, value):
        if (
            value is None
            or isinstance(value, bool)
            or value == ""
            or (isinstance(value, (int, float)) and abs(value) < 10)
        ):
            return True  # too common to say where it was read
        stands = [self.padding.place(path) for path, leaf in leaves(part) if json_equal(leaf, value)]
        if stands or not isinstance(value, str):
            return not stands or any(self.reader.part(self.shown, path) == value for path in stands)
        named = [path for path, key in keys(part) if key == value.removeprefix("./")]
        return not named or any(self.names(path, value.removeprefix("./")) for path in named)

    def names(self, path, key):
        shown = self.reader.part(self.shown, self.padding.place(path))
        return isinstance(shown, self.reader.Shown) and (key in shown.entries or key in shown.names)


@pytest.mark.parametrize("with_message", [True, False], ids=["call and message", "call alone"])
def test_a_view_holds_what_real_calls_read_and_change(read_jsonl, reader, with_message):
    messages = {task["id"]: task["turns"] for task in read_jsonl("bfcl_multiturn_tasks.jsonl.gz")}
    sizes, lacking = [], []
    for task in read_jsonl("bfcl_multiturn_calls.jsonl.gz")[::EVERY]:
        state, padding = task["initial_state"], Padding(task["initial_state"], task["id"])
        for turn, said in zip(task["turns"], messages[task["id"]], strict=True):
            text = "\n".join(message["content"] for message in said["user"])
            for step in turn:
                padded = padding.pad(state)
                focus = focus_words(step["call"]["name"], step["call"]["args"], *([text] if with_message else []))
                shown = view(padded, focus=focus, budget=12_000)
                assert len(shown) <= 12_000
                lack = Check(reader, reader.read(shown), padding).lacks(state, padded, step)
                lacking += [(task["id"], step["call"], lack)] if lack else []
                sizes.append(len(shown))
                state = apply_patch(state, step["patch"])
    print(
        f"\n{len(sizes) - len(lacking)} of {len(sizes)} calls; median view {sorted(sizes)[len(sizes) // 2]} characters",
        lacking,
    )
    assert len(sizes) > 80
    assert len(lacking) <= 0.01 * len(sizes), lacking
