"""Optuna as a search of Quartet: python3 -m quartet_search.optuna --sampler tpe --pruner median.

Each trial is one of an Optuna study in memory. When Quartet starts it again, it gets the past, so that nothing is kept in between.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial, TrialState

from quartet_search import Dimension, Hello, Result, Value, serve

SAMPLERS = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "cmaes": "CmaEsSampler",
    "gp": "GPSampler",
    "qmc": "QMCSampler",
}
PRUNERS = {
    "none": "NopPruner",
    "median": "MedianPruner",
    "successive_halving": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
}


class Optuna:
    """A study that Quartet asks and tells."""

    def __init__(
        self,
        sampler: str = "tpe",
        pruner: str = "none",
        sampler_options: Mapping[str, Any] | None = None,
        pruner_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.sampler, self.pruner = sampler, pruner
        self.sampler_options, self.pruner_options = dict(sampler_options or {}), dict(pruner_options or {})
        if sampler == "tpe":
            self.sampler_options.setdefault("constant_liar", True)  # trials run together
        self.trials: list[Trial] = []
        self.stopping: set[int] = set()

    def start(self, hello: Hello) -> None:
        # Its stream began anew with each life: another seed, so that no trial is proposed again.
        seed = (hello.seed + len(hello.trials)) % 2**32
        self.study = optuna.create_study(
            direction="maximize" if hello.goal == "maximize" else "minimize",
            sampler=getattr(optuna.samplers, SAMPLERS[self.sampler])(seed=seed, **self.sampler_options),
            pruner=getattr(optuna.pruners, PRUNERS[self.pruner])(**self.pruner_options),
        )
        self.space = {d.name: distribution(d) for d in hello.space}
        for params in hello.trials:
            self.study.enqueue_trial(dict(params))
            self.trials.append(self.study.ask(self.space))
        for result in hello.results:
            self.tell(result)

    def ask(self, trial: int) -> Mapping[str, Value]:
        self.trials.append(self.study.ask(self.space))
        assert len(self.trials) == trial + 1
        return dict(self.trials[trial].params)

    def tell(self, result: Result) -> Iterable[int]:
        trial = self.trials[result.trial]
        if result.kind == "report":
            if result.value is not None and result.step is not None:
                trial.report(result.value, int(result.step))
                if result.trial not in self.stopping and trial.should_prune():
                    self.stopping.add(result.trial)
                    return [result.trial]
        elif result.kind == "finished" and result.value is not None:
            self.study.tell(trial, result.value)
        else:
            self.study.tell(trial, state=TrialState.PRUNED if result.kind == "stopped" else TrialState.FAIL)
        return []


def distribution(d: Dimension) -> BaseDistribution:
    """The dimension as Optuna has it."""
    if d.choices:
        return CategoricalDistribution(d.choices)
    log = d.scale.startswith("log_")
    if d.scale in ("int", "log_int"):
        return IntDistribution(int(d.low), int(d.high), log=log)
    return FloatDistribution(d.low, d.high, log=log)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python3 -m quartet_search.optuna", description="Optuna as a search of Quartet")
    parser.add_argument("--sampler", choices=sorted(SAMPLERS), default="tpe", help="proposes trials (tpe)")
    parser.add_argument("--pruner", choices=sorted(PRUNERS), default="none", help="stops trials by their reports (none)")
    option = {"action": "append", "default": [], "metavar": "NAME=VALUE", "type": _option}
    parser.add_argument("--set-sampler", help="an argument of the sampler, its value in JSON", **option)  # type: ignore[arg-type]
    parser.add_argument("--set-pruner", help="an argument of the pruner, its value in JSON", **option)  # type: ignore[arg-type]
    args = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    serve(Optuna(args.sampler, args.pruner, dict(args.set_sampler), dict(args.set_pruner)))


def _option(text: str) -> tuple[str, None | bool | float | str | list[Any] | dict[str, Any]]:
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


if __name__ == "__main__":
    main()
