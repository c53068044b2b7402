"""What becomes of results in a study of Optuna."""

import pytest

pytest.importorskip("optuna", reason="no Optuna; make optuna installs it")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from quartet_search import Dimension, Hello, Result  # noqa: E402
from quartet_search.optuna import Optuna, distribution  # noqa: E402

SPACE = [Dimension("lr", "log_uniform", 1e-5, 0.1), Dimension("n", "int", 1, 8), Dimension("word", "choice", choices=("a", 1))]


def started(**options):
    search = Optuna(**options)
    search.start(Hello("maximize", 7, SPACE))
    return search


def result(trial, kind="report", step=1.0, value=0.5):
    return Result(trial, kind, 1.0, step, value)


def test_distributions():
    assert distribution(SPACE[0]) == FloatDistribution(1e-5, 0.1, log=True)
    assert distribution(SPACE[1]) == IntDistribution(1, 8)
    assert distribution(Dimension("b", "log_int", 1e0, 1e6)) == IntDistribution(1, 1000000, log=True)
    assert distribution(Dimension("x", "uniform", -1, 1)) == FloatDistribution(-1, 1)
    assert distribution(SPACE[2]) == CategoricalDistribution(("a", 1))
    assert distribution(Dimension("f", "fixed", choices=(3,))) == CategoricalDistribution((3,))


def test_states():
    search = started()
    for trial in range(5):
        search.ask(trial)
    search.tell(result(0, "finished"))
    search.tell(result(1, "finished", None, None))
    search.tell(result(2, "stopped"))
    search.tell(result(3, "failed"))
    states = [trial.state for trial in search.study.trials]
    assert states == [TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING]
    assert search.study.best_value == 0.5 and search.study.direction.name == "MAXIMIZE"


def test_bad_trials_are_stopped_once():
    search = started(pruner="median", pruner_options={"n_startup_trials": 1})
    search.ask(0), search.ask(1)
    assert list(search.tell(result(0, value=0.9))) == []
    search.tell(result(0, "finished", value=0.9))
    assert list(search.tell(result(1, value=0.1))) == [1]
    assert list(search.tell(result(1, step=2.0, value=0.1))) == []


def test_the_past_is_that_of_the_study():
    search = started(pruner="median")
    asked = [dict(search.ask(trial)) for trial in range(3)]
    past = [result(0), result(0, "finished"), result(1, step=3.0)]
    for r in past:
        search.tell(r)
    again = Optuna(pruner="median")
    again.start(Hello("maximize", 7, SPACE, asked, past))
    assert [trial.params for trial in again.study.trials] == asked
    assert [trial.state for trial in again.study.trials] == [trial.state for trial in search.study.trials]
    assert [trial.intermediate_values for trial in again.study.trials] == [{1: 0.5}, {3: 0.5}, {}]
    assert dict(again.ask(3)) not in asked
