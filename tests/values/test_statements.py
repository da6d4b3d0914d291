"""What texts state: clauses with their mood and polarity, and the words that they are about."""

import pytest

from gecko_graph.conversation.english import stem, topic_of
from gecko_graph.conversation.statements import LONGEST, read_clauses, split_sentences


@pytest.mark.parametrize(("text", "concept", "sign"), [
    ("I deleted the reminder.", "exist", -1), ("The reminder was not deleted.", "exist", 1),
    ("The reminder is still there.", "exist", 1), ("I can't delete the reminder.", "exist", 1),
    ("I was unable to delete it.", "exist", 1), ("I deleted nothing.", "exist", 1),
    ("Your Wi-Fi has been turned off.", "power", -1), ("I've switched the wifi in the study on.", "power", 1),
    ("The wifi isn't off.", "power", 1), ("It's too late to cancel order 7.", "valid", 1),
    ("Your position is unknown.", "know", -1), ("I moved your flight at no extra cost.", "change", 1),
    ("Not only was it sent, it was read.", "send", 1), ("A transfer was made.", "transfer", 1),
    ("Pets aren't allowed, and nothing was sent.", "send", -1),
])  # fmt: skip
def test_a_negation_turns_the_predicates_after_it(text, concept, sign):
    signs = {name: each for clause in read_clauses(text) for name, each in clause.signs.items()}
    assert signs[concept] == {sign}


@pytest.mark.parametrize(("text", "mood"), [
    ("The order was cancelled.", "stated"), ("I couldn't cancel the order.", "stated"),
    ("I can confirm that the order was cancelled.", "stated"),
    ("I'll cancel the order.", "open"), ("I can cancel the order.", "open"),
    ("If you like, the order was cancelled.", "stated"), ("The order can be cancelled.", "open"),
    ("Please cancel the order.", "open"), ("Shall I cancel the order?", "asked"),
])  # fmt: skip
def test_what_is_promised_or_asked_is_not_stated(text, mood):
    assert [each.mood for each in read_clauses(text) if "valid" in each.signs] == [mood]


@pytest.mark.parametrize("text", ["To cancel it, call us.", "Cancelling it is free.", "The cancelled order is here."])
def test_what_is_only_named_is_not_stated(text):
    assert not any("valid" in each.signs for each in read_clauses(text))


@pytest.mark.parametrize(
    "text", ["It might be ready.", "Only the lamp is ready.", "It is ready or broken.", "I doubt it is ready."]
)
def test_what_takes_something_back_is_marked(text):
    assert all(each.limited for each in read_clauses(text))


def test_a_sentence_is_split_where_another_statement_starts_also_in_lists_quotes_and_markdown():
    clauses = read_clauses("The front door is locked, but the garage is open. It's 84 %.")
    assert [(each.sentence, each.words) for each in clauses] == [(0, ("front", "door")), (0, ("garag",)), (1, ())]
    assert split_sentences("- **Wifi** is off\n2. It works\n\n`a`") == ["Wifi is off", "It works", "a"]
    assert read_clauses('She wrote, "what shall we eat?", to Ana.')[0].mood == "stated"
    assert read_clauses('I removed "Buy milk".')[0].words == ("buy", "milk")


def test_words_are_compared_without_endings_and_by_synonyms():
    assert stem("reminders") == stem("reminder's") == stem("reminder")
    assert topic_of("photos") == topic_of("pictures") != ""
    assert topic_of("the") == topic_of("monday") == ""


@pytest.mark.parametrize(
    "text",
    ["", " \n", "?!", "\x00\x1b[31m", "😀" * 50, "\u4f60\u597d\uff0c\u3002", "مرحبا", "ʰᵉˡˡᵒ", "'" * 99, '"' * 99],
)
def test_any_text_is_read(text):
    assert all(each.text for each in read_clauses(text))


def test_only_the_start_of_a_long_text_is_read():
    assert sum(map(len, split_sentences("a word. " * LONGEST))) <= LONGEST
