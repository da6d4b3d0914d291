"""Several trials of each case, each with a seed of its own: pass^k (tau-bench), and means as in the paper.

The paper runs every tau2-bench task five times (section 6.1). pass^k is the chance that k trials of a task all succeed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from math import comb

from gecko_graph.state import JsonObject

from .figures import Measured, Table, mean_of, tools_of
from .options import Options
from .runner import Selection
from .suite import Case, EvalError, Record, Suite, Summary


def pass_hat(successes: int, trials: int, k: int) -> float:
    """Return the unbiased estimate of pass^k from a task's trials: of all choices of k, the share without a failure.

    S. Yao et al., tau-bench, arXiv 2406.12045, section 4.
    """
    if not 0 <= successes <= trials or not 1 <= k <= trials:
        raise ValueError(f"{successes} successes of {trials} trials, k = {k}")
    return comb(successes, k) / comb(trials, k)


def repeated(kind: type[Suite], options: Options) -> Suite:
    """Return the suite, each of its cases run `options.trials` times.

    Raises:
        EvalError: Nothing in the run is random, so that every trial would be the same run.
    """
    suite = type(kind.__name__, (_Repeated, kind), {"__doc__": kind.__doc__})(options)
    assert isinstance(suite, _Repeated)
    if not suite.is_random():
        raise EvalError(
            f"--trials {options.trials}: nothing is random here, so that all trials would be one: name a model that "
            "is asked (--model, --role-model)"
        )
    suite.each = [kind(replace(options, seed=options.seed + number)) for number in range(options.trials)]
    return suite


def several(chosen: Selection, trials: int) -> Selection:
    """Return the chosen cases, each so many times: `data` is the number of the trial, from 0, and the case."""
    cases = [_trial(case, number) for case in chosen.cases for number in range(trials)]
    return Selection(cases, chosen.of * trials)


def _trial(case: Case, number: int) -> Case:
    facts = {**case.facts, "case": case.id, "trial": number + 1}
    return replace(case, id=f"{case.id}#{number + 1}", facts=facts, data=(number, case))


class _Repeated(Suite):
    each: Sequence[Suite]

    def run_case(self, case: Case) -> JsonObject | Awaitable[JsonObject]:
        number, given = case.data
        suite: Suite = self.each[number]
        return suite.run_case(given)

    def summarise(self, records: Sequence[Record]) -> Summary:
        trials, seed = self.options.trials, self.options.seed
        first = [replace(record, id=record.facts["case"]) for record in records if record.facts["trial"] == 1]
        made = super().summarise(first)  # type: ignore[safe-super]
        table = Table(
            f"Over {trials} trials",
            ["cases", *(f"pass^{k}" for k in range(1, trials + 1))],
            note=f"Trial n has the seed {seed} + n - 1. pass^k: the chance that k trials of a case all succeed, "
            "estimated without bias; pass^1 is the mean over the trials. n counts cases. The other tables of the "
            "suite are the first trial's.",
        )
        for name, some in self._rows(records).items():
            table.add(name, *(self._pass_hat(some, k) for k in range(1, trials + 1)))
        return replace(made, figures=[table, *made.figures])

    def rates(self, records: Sequence[Record]) -> Mapping[str, Measured]:
        groups = dict.fromkeys(record.group for record in records)
        return {name: self._pass_hat([each for each in records if each.group == name], 1) for name in groups}

    def _rows(self, records: Sequence[Record]) -> Mapping[str, list[Record]]:
        rows: dict[str, list[Record]] = {}
        for record in records:
            names = [record.group, *(record.facts[key] for key in ("arm", "method", "model") if key in record.facts)]
            rows.setdefault(", ".join(map(str, names)), []).append(record)
        return rows

    def _pass_hat(self, records: Sequence[Record], k: int) -> Measured:
        found: dict[str, int] = {}
        for record in records:
            case = record.facts["case"]
            found[case] = found.get(case, 0) + (record.done and self.passed(record))
        values = [pass_hat(count, self.options.trials, k) for count in found.values()]
        mean = mean_of(values, tools=tools_of(records), form="percent")
        return replace(mean, high=min(1.0, mean.high))
