"""quartet_search as Quartet uses it: lines in, lines out."""

import io
import json
import os
import subprocess
import sys

import pytest

from quartet_search import Dimension, Hello, Result, serve

SPACE = [
    {"name": "lr", "log_uniform": [1e-05, 0.1], "points": 3},
    {"name": "n", "int": [1, 8]},
    {"name": "word", "choice": ["a", 1]},
    {"name": "fixed", "fixed": 3},
]
HELLO = {"hello": {"protocol": 1, "goal": "minimize", "seed": 7, "space": SPACE}}


class Recorder:
    """Writes down what it is asked and told."""

    def __init__(self, proposals):
        self.proposals, self.results, self.asked = proposals, [], []

    def start(self, hello):
        self.hello = hello

    def ask(self, trial):
        self.asked.append(trial)
        return self.proposals.pop(0) if self.proposals else None

    def tell(self, result):
        self.results.append(result)
        return [result.trial] if result.kind == "report" and result.value and result.value > 1 else []


def said(search, *requests):
    out = io.StringIO()
    serve(search, [json.dumps(request) + "\n" for request in requests], out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def report(trial, value, kind="report"):
    return {"trial": trial, "kind": kind, "at_seconds": 1.5, "step": 2, "value": value}


def test_hello_is_read():
    search = Recorder([])
    assert said(search, HELLO) == [{"protocol": 1}]
    assert search.hello == Hello(
        goal="minimize",
        seed=7,
        space=[
            Dimension("lr", "log_uniform", 1e-05, 0.1),
            Dimension("n", "int", 1, 8),
            Dimension("word", "choice", choices=("a", 1)),
            Dimension("fixed", "fixed", choices=(3,)),
        ],
    )


def test_questions_are_answered():
    search = Recorder([{"x": 0.5}, {"x": True, "n": 2.0}, {"x": 1}])
    answers = said(search, HELLO, {"ask": 2}, {"tell": [report(0, 0.5), report(1, 2.5), report(0, None, "failed")]}, {"ask": 2})
    assert answers == [
        {"protocol": 1},
        {"trials": [{"id": 0, "params": {"x": 0.5}}, {"id": 1, "params": {"x": "true", "n": 2}}]},
        {"stop": [1]},
        {"trials": [{"id": 2, "params": {"x": 1}}]},
    ]
    assert search.asked == [0, 1, 2, 3]
    assert search.results[2] == Result(0, "failed", 1.5, 2, None)
    assert search.results[2].ended and not search.results[0].ended


def test_waiting_and_done():
    search = Recorder([])
    assert said(search, HELLO, {"ask": 1}) == [{"protocol": 1}, {}]
    search.done = True
    assert said(search, HELLO, {"ask": 1}) == [{"protocol": 1}, {"done": True}]


def test_the_past_is_told():
    past = {"trials": [{"id": 0, "params": {"x": 1}}, {"id": 1, "params": {"x": 2}}], "tell": [report(0, 0.5, "finished")]}
    search = Recorder([{"x": 3}])
    answers = said(search, {"hello": {**HELLO["hello"], "resume": past}}, {"ask": 1})
    assert answers[1] == {"trials": [{"id": 2, "params": {"x": 3}}]}
    assert search.hello.trials == [{"x": 1}, {"x": 2}]
    assert search.hello.results == [Result(0, "finished", 1.5, 2, 0.5)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_none(value):
    with pytest.raises(ValueError, match="no finite number"):
        said(Recorder([{"x": value}]), HELLO, {"ask": 1})


def test_another_protocol():
    with pytest.raises(ValueError, match="protocol 2, not 1"):
        said(Recorder([]), {"hello": {**HELLO["hello"], "protocol": 2}})


def test_what_it_prints_is_no_answer(tmp_path):
    program = tmp_path / "loud.py"
    program.write_text(
        "import os\n"
        "from quartet_search import serve\n"
        "class Loud:\n"
        "    def start(self, hello): print('hello', hello.seed)\n"
        "    def ask(self, trial): os.system('echo from a child'); return {'x': 1}\n"
        "    def tell(self, result): return []\n"
        "serve(Loud())\n"
    )
    ran = subprocess.run(
        [sys.executable, str(program)],
        input=json.dumps(HELLO) + '\n{"ask":1}\n',
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))},
    )
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [{"protocol": 1}, {"trials": [{"id": 0, "params": {"x": 1}}]}]
    assert "hello 7" in ran.stderr and "from a child" in ran.stderr
