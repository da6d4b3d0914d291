"""The next data set's rows (LoopTool, equation 5, tables 3 and 4)."""

from collections import Counter

import pytest

from gecko_graph.training.mix import Chosen, MixFindings, draw_seeds, mix, thin


def found(errors=0, variants=0, mastered=0, corrected=0):
    """Errors e0.., each with as many variants, and mastered rows m0.. of falling perplexity."""
    names = [f"e{at}" for at in range(errors)]
    return MixFindings(
        errors=names,
        corrected={*names[:corrected]},
        variants=[(f"{name}/1.{at}", name) for name in names for at in range(variants)],
        mastered=[(f"m{at}", 9.0 - at / 1000) for at in range(mastered)],
        matched=[f"m{at}" for at in range(mastered)],
        mismatched=[*names, *(f"w{at}" for at in range(errors))],
    )


def parts(rows):
    return Counter(each.part for each in rows)


def test_sizes_are_table_3s_of_28160_seeds():
    drawn = draw_seeds([str(at) for at in range(28_160)], seed=0)
    assert [len(each) for each in drawn] == [18_304, 5_632, 2_816, 1_408]
    assert len({id_ for each in drawn for id_ in each}) == 28_160
    assert drawn != draw_seeds([str(at) for at in range(28_160)], seed=1)


@pytest.mark.parametrize(
    ("errors", "variants", "new", "left"),
    [(1919, 6566, 5632, 4187), (3386, 8066, 2816, 4036), (3731, 8169, 1408, 4996)],
)
def test_the_total_stays_as_in_table_3(errors, variants, new, left):
    given = found(errors=errors, variants=4, mastered=10_000)
    given.variants = given.variants[:variants]
    rows = mix(given, [f"s{at}" for at in range(new)], 18_304)
    assert parts(rows) == {"error": errors, "variant": variants, "fresh": new, "mastered": left}
    assert [each.id for each in rows if each.part == "mastered"] == [f"m{at}" for at in range(left)]


def test_variants_are_thinned_evenly_over_their_seeds():
    rows = mix(found(errors=3731, variants=4, mastered=10), ["s"], 18_304)
    assert parts(rows) == {"error": 3731, "variant": 18_304 - 3731 - 1, "fresh": 1}
    assert thin([("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")], 3) == ["a1", "a2", "b1"]
    assert thin([("a1", "a")], 0) == []
    rows = mix(found(errors=10, variants=1), ["s"], 6, seed=3)  # errors alone that overflow are drawn
    assert parts(rows) == {"error": 5, "fresh": 1}
    assert rows == mix(found(errors=10, variants=1), ["s"], 6, seed=3)
    given = found()
    given.mastered = [("low", 1.0), ("unknown", None), ("high", 2.0)]
    assert mix(given, [], 2) == [Chosen("high", "mastered"), Chosen("low", "mastered")], "unknown is never high"
    assert len(mix(given, [], 3)) == 2


def test_ablations_exchange_as_many_rows():
    given = found(errors=4, variants=2, mastered=30, corrected=1)
    full = mix(given, ["s"], 20)
    assert parts(full) == {"corrected": 1, "error": 3, "variant": 8, "mastered": 7, "fresh": 1}
    assert parts(mix(given, ["s"], 20, "no-expansion")) == {"corrected": 1, "error": 3, "mastered": 7, "fresh": 1}
    replaced = mix(given, ["s"], 20, "high-ppl-replace")
    assert {each.id for each in replaced if each.part == "mastered"} == {f"m{at}" for at in range(15)}
    repeated = [(each.id, each.again) for each in mix(given, ["s"], 20, "repeat-errors") if each.part == "repeated"]
    assert repeated == [(f"e{at % 4}", at // 4 + 1) for at in range(8)]
    drawn = {each.id for each in mix(given, ["s"], 20, "no-high-ppl") if each.part == "mastered"}
    assert len(drawn) == 7
    assert drawn != {f"m{at}" for at in range(7)}
    without = given.without_judge(1)
    assert len(without.errors) == 4
    assert {*without.errors} < {*given.mismatched}
    assert not without.corrected


def test_without_a_judge_no_row_is_an_error_and_mastered():
    given = found(errors=2, mastered=3)
    given.mastered.append(("w0", 99.0))  # right otherwise, by a judge that there is not
    assert "w0" not in dict(given.without_judge(0).mastered)
    ids = [each.id for seed in range(9) for each in mix(given.without_judge(seed), [], 5)]
    assert len(ids) == 9 * 5
    assert all(len({*ids[at : at + 5]}) == 5 for at in range(0, 45, 5))
