"""Figures with their units, and which stand for one another."""

import pytest

from gecko_graph.conversation.quantities import find_figures, is_said, may_say, rivals_of


def wanted(text):
    return find_figures(text)[0]


SAME = [
    ("6.2137 miles", "about 6.2 miles"), ("12.75 hours", "12 hours and 45 minutes"), ("12.75 hours", "almost 13 hours"),
    ("1.5 hours", "90 minutes"), ("1.5 hours", "an hour and a half"), ("45 minutes", "three quarters of an hour"),
    ("24 months", "two years"), ("14 days", "two weeks"), ("0.55 km", "550 metres"), ("1.2 kg", "1,200 grams"),
    ("180 cm", "1.80 m"), ("5 feet 11 inches", "5'11\""), ("3.4 GB", "around 3.4 gigabytes"),
    ("210 km", "roughly 210 kilometres"), ("€1,204.55", "1204.55 euros"), ("$39", "39 dollars"),
    ("£68.00", "68 pounds"), ("231.48 euros", "about €231.50"), ("€1.2 million", "1,200,000 euros"),
    ("2.4 %", "2.4 percent"), ("19.5 °C", "19.5 degrees"), ("-4 °C", "\u22124 °C"), ("15:00", "3 pm"),
    ("18:25", "6:25 in the evening"), ("10:30", "half past ten"), ("12:00", "at noon"), ("06:12", "6:12 am"),
    ("2027-05-12", "12 May"), ("2027-05-12", "May 12th, 2027"), ("Tuesday", "on Tuesdays"),
    ("3 messages", "three of them"), ("+32 470 55 01 45", "+32470550145"), ("XJ-204", "XJ204"),
    ("4.2.1", "version 4.2.1"), ("17C", "seat 17C"),
]  # fmt: skip
OTHER = [
    ("6.2137 miles", "6.3 miles"), ("12.75 hours", "12 hours and 15 minutes"), ("24 months", "six months"),
    ("0.55 km", "550 miles"), ("1.2 kg", "1.2 lb"), ("180 cm", "180 mm"), ("3.4 GB", "3.4 megabytes"),
    ("€1,204.55", "€1,240.55"), ("$39", "€39"), ("231.48 euros", "213.48 euros"), ("18 °C", "18 °F"),
    ("2.4 %", "4.2 %"), ("15:00", "16:00"), ("2027-05-12", "21 May"), ("Tuesday", "Thursday"),
    ("128 photos", "127 photos"), ("+32 470 55 01 45", "+32470550154"), ("XJ-204", "XJ-240"), ("4.2.1", "4.2.0"),
]  # fmt: skip


@pytest.mark.parametrize(("figure", "text"), SAME)
def test_a_figure_is_found_rounded_converted_and_spelt(figure, text):
    assert is_said(wanted(figure), text)
    assert not rivals_of(wanted(figure), text)


@pytest.mark.parametrize(("figure", "text"), OTHER)
def test_another_figure_is_not_it(figure, text):
    assert not is_said(wanted(figure), text)


@pytest.mark.parametrize(("figure", "text"), [each for each in OTHER if each[1] not in ("€39", "18 °F")])
def test_another_figure_of_its_kind_is_a_rival(figure, text):
    assert rivals_of(wanted(figure), text)
    assert not rivals_of(wanted(figure), text, [text])


@pytest.mark.parametrize(("figure", "text"), [
    ("18:25", "6:25"), ("07:00", "at 7"), ("£85", "-£85"), ("€1,204.55", "1 204,55 €"),
    ("2027-06-03", "03/06/2027"), ("24 months", "a couple of them"), ("Friday", "tomorrow"),
])  # fmt: skip
def test_what_is_not_read_for_certain_may_be_meant(figure, text):
    assert may_say(wanted(figure), text)


def test_pounds_are_money_or_weight():
    assert {each.kind for each in find_figures("50 pounds")} == {"pound", "mass"}


@pytest.mark.parametrize(
    "text",
    ["", "1" * 40_000, "1 2 " * 5_000, "$€£%", "\uff11\uff12", "\u0663 \u0664", "1.2.3.4.5", "-" * 999, "1,2,3,,4"],
)
def test_any_text_is_read(text):
    assert all(isinstance(each.text, str) for each in find_figures(text))
