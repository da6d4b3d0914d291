"""Values that the validator decides by rule: what the words mean in the form that is asked for, and nothing else."""

import pytest

from gecko_graph.world.decided import Decided, day_of

ISO = {"type": "string", "description": "The date in the format YYYY-MM-DD"}
START = {"type": "string", "description": "Local time, 2026-12-24T10:00"}
DOORS = {"type": "array", "items": {"type": "string"}, "description": 'Doors. [Enum]: ["front", "back", "rear_left"]'}


def decides(value, rule, *texts, name="value", results=(), now="", about="", place=None):
    schema = {"type": "object", "properties": {name: rule}}
    return Decided(texts, results, now).decides(place or f"/{name}", {name: value}, schema, about)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-10-10", "from Rome on October 10th 2026"),
        ("2026-10-10", "on 10 Oct 2026, please"),
        ("2026-11-15", "on the 15th of the year 2026's eleventh month"),
        ("2026-11-15", "on the 15th of next month, which is November of 2026"),
        ("2024-03-03", "March 3rd next year. Today is 2023.10.1"),
        ("2023-10-02", "tomorrow (today is Sunday, 2023-10-01)"),
    ],
)
def test_a_date_in_other_words_is_decided(value, said):
    assert decides(value, ISO, said)
    year, month, day = value.split("-")
    for wrong in (
        f"{year}-{month}-{int(day) + 11:02}",
        f"{int(year) + 1}-{month}-{day}",
        f"{month}/{day}/{year}",
        value + "T00:00",
    ):
        assert not decides(wrong, ISO, said)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-04-15", "check in on April 15th 2026, check out on April 20th 2026"),
        ("2026-05-05", "sometime in May 2026"),
        ("2023-04-25", "next Monday. Today is Tuesday April 25th 2023"),
        ("2023-04-26", "on the upcoming Wednesday, today is Monday April 25th 2023"),
        ("2026-12-15", "on December 15th"),
        ("2026-02-30", "on 30 February 2026"),
        ("2026-06-05", "on 05/06/2026"),
        ("2026-06-05", ""),
    ],
)
def test_words_that_may_mean_another_day_decide_nothing(value, said):
    assert not decides(value, ISO, said)


def test_the_form_that_is_asked_for_counts():
    assert not decides("2026-10-10", {"type": "string", "description": "A date"}, "on October 10th 2026")
    assert not decides("2026-10-10", {"description": "As YYYY-MM-DD HH:mm:ss"}, "on October 10th 2026")
    assert decides("10/24/2026", {"description": "as MM/DD/YYYY"}, "on October 24th 2026")
    assert not decides("24/10/2026", {"description": "as MM/DD/YYYY"}, "on October 24th 2026")
    assert decides("12/2026", {"description": "in the form MM/YYYY"}, "it expires 12/2026")
    assert not decides("12/26", {"description": "in the form MM/YYYY"}, "it expires 12/26")


@pytest.mark.parametrize(
    ("value", "said", "decided"),
    [
        ("2026-12-02T14:00", "Book Rex with Dr. Lund tomorrow at 14:00.", True),
        ("2026-12-04T09:00", "Book Minka on Friday at 9:00.", True),
        ("2026-12-04T21:00", "Book Minka on Friday at 9 pm.", True),
        ("2026-12-05T13:00", "He cannot come today. Move him to Saturday at 13:00, same vet.", True),
        ("2026-12-01T13:00", "He cannot come today. Move him to Saturday at 13:00, same vet.", False),
        ("2026-12-02T15:00", "Book Rex tomorrow at 14:00.", False),
        ("2026-12-03T09:00", "the first free hour on Thursday from 9:00 on", False),
        ("2026-12-08T10:00", "on Tuesday at 10:00", False),
        ("2026-12-02T14:00", "Book Rex at 14:00.", False),
    ],
)
def test_a_day_that_is_counted_from_today_and_its_time(value, said, decided):
    policy = "You are at a front desk. Today is Tuesday, 1 December 2026, 09:00."
    assert decides(value, START, said, now=day_of([policy])) is decided
    assert decides(value, START, said, now="2026-12-01T09:00") is decided
    assert not decides(value, START, said)


@pytest.mark.parametrize(
    ("doors", "said", "decided"),
    [
        (["front", "back", "rear_left"], "lock the car", True),
        (["front", "back", "rear_left"], "lock the front door", False),
        (["front"], "lock the front door", True),
        (["rear_left", "back"], "lock the rear left one and the back", True),
        (["front", "back"], "lock the car", False),
        (["trunk"], "lock the trunk", False),
    ],
)
def test_options_of_a_description_are_decided_where_they_are_named_or_all_taken(doors, said, decided):
    assert decides(doors, DOORS, said, place="/value/0") is decided


@pytest.mark.parametrize(
    ("rule", "value", "said", "decided"),
    [
        ("One of [small, large]", "large", "a large pizza", True),
        ("One of [small, large]", "small", "a pizza", False),
        ("[Enum]: USD, EUR", "USD", "convert USD to EUR", False),
        ("3 letter code of the airport", "JFK", "from JFK to LAX", True),
        ("3 letter code of the airport", "LAX", "from JFK to LAX", False),
        ("City, as in the format of city, country", "Rome", "from Rome", False),
        ("in the format of street, city, state", "Elm 3, Spring, TX", "to Elm 3, Spring, TX", True),
        ("in the format of street, city, state", "Spring, TX", "to Elm 3, Spring, TX", False),
        ("should start with @", "@ann", "mention Ann", True),
        ("should start with @", "@anna", "mention Ann", False),
        ("", " ", "anything", False),
    ],
)
def test_codes_options_and_parts(rule, value, said, decided):
    assert decides(value, {"type": "string", "description": rule}, said, name="travel_from") is decided


@pytest.mark.parametrize(
    ("value", "said", "decided"),
    [
        (36.8, "fill the tank to the max limit", True),
        (36.7, "fill the tank to the max limit", False),
        (63.2, "fill the tank to the max limit", False),
        (36.8, "buy some fuel", False),
        (15.2, "pay both together", True),
        (15.2, "pay them", False),
        (2, "a priority-2 ticket, fuel: 9", False),
    ],
)
def test_what_is_left_to_a_limit_and_a_sum_that_is_asked_for(value, said, decided):
    results = [{"fuelLevel": 13.2}, {"bonus": 2.0, "full": True}]
    rule = {"type": "number", "description": "The amount to add."}
    assert (
        decides(value, rule, said, results=results, about="The tank can hold up to 50 gallons.", name="amount")
        is decided
    )


def test_a_number_behind_its_own_name_is_said():
    assert decides(2, {"type": "integer"}, "a priority-2 ticket", name="priority")
    assert decides(2, {"type": "integer"}, "priority: 2", name="ticketPriority")
    assert not decides(3, {"type": "integer"}, "a priority-2 ticket, 3 copies", name="priority")
    assert not decides(2, {"type": "integer"}, "a priority-25 ticket", name="priority")
    assert not any(decides(value, {}, "x") for value in (None, True, {"a": 1}))
    assert day_of(["Be kind.", "Now it is 2026-12-01T09:00."]) == "2026-12-01", "today is what the policy says"
    assert day_of(["Today we sell until 1 May 2026 or 2 May 2026."]) == day_of(["Founded 1 May 1926."]) == ""
