"""A search for hyper-parameters of real trainings on four declared devices under five compositions: `make tune`.

python3 plugins/python/tests/tune.py QUARTET [--optuna PYTHON] [--epochs N] [--set KEY=VALUE ...] [--only NAME ...]

Without --optuna the searches of Optuna are SKIPPED. Each --set goes to every run: --epochs 3 --set workload.config.trials=4 makes a short one.
"""

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[3]
CONFIG = "examples/torch/tune.yaml"
TRIALS, EPOCHS = 24, 27
FASTER = 0.05

# Seconds that a sample takes a device at least. A restart costs some 4 s, most of them the start of Python: a training is long beside that, and all take less than 12 minutes.
SAMPLE_SECONDS = 0.0007

ASHA = "pipeline.admission=[{type: asha, config: {first: 1, reduction: 3, max_step: 27}}]"
ELASTIC = "workload.config.job.max_replicas=4"


def optuna(python):
    return f"workload.config.search={{type: external, config: {{command: [{json.dumps(python)}, -m, quartet_search.optuna, --sampler, tpe]}}}}"


def variants(python):
    """The name of each, how long a sample takes and its settings; none where Optuna is missing."""
    with_optuna = [optuna(python)] if python else None
    return {
        "random, static": (SAMPLE_SECONDS, []),
        "random, ASHA, static": (SAMPLE_SECONDS, [ASHA]),
        "random, ASHA, elastic": (SAMPLE_SECONDS, [ASHA, ELASTIC]),
        "Optuna TPE, static": (SAMPLE_SECONDS, with_optuna),
        "Optuna TPE, elastic": (SAMPLE_SECONDS, with_optuna and [*with_optuna, ELASTIC]),
    }


def command(epochs, sample_seconds):
    words = ["python3", "examples/torch/digits_trial.py", "--epochs", str(epochs), "--rate", "${rate}", "--momentum", "${momentum}", "--width", "${width}",
             "--sample-seconds", str(sample_seconds)]
    return f"workload.config.job.command={json.dumps(words)}"


def run(program, name, sets, folder):
    """The summary of a run, the rows of its trials and of its jobs."""
    slug = "".join(c for c in name.lower().replace(" ", "-") if c.isalnum() or c == "-")
    arguments = [program, "run", "-q", "-o", "json", "-f", CONFIG, "--out", folder, "--fresh", "--metrics", "off", "--set", f"name={slug}"]
    for s in sets:
        arguments += ["--set", s]
    # The jobs' python3 is the one of this script, and the search finds quartet_search.
    environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "plugins/python")}
    done = subprocess.run(arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"run ended with {done.returncode}: {' '.join(arguments)}")
    return json.loads(done.stdout), *(table(pathlib.Path(folder, slug, file)) for file in ("trials.csv", "jobs.csv"))


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def load():
    with open("/proc/loadavg") as file:
        return file.read().split()[0]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--optuna", default="", help="a Python that has Optuna")
    options.add_argument("--epochs", type=int, default=EPOCHS)
    options.add_argument("--set", action="append", default=[])
    options.add_argument("--only", action="append", default=[])
    o = options.parse_args()

    spans, wrong = {}, []
    print("| search | a sample takes | trials that finished, stopped, failed | makespan | best accuracy | at | device time | devices in use, mean | restarts "
          "| load before, after |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    short = bool(o.set) or o.epochs != EPOCHS
    for name, (sample_seconds, sets) in variants(o.optuna).items():
        if o.only and name not in o.only:
            continue
        if sets is None:
            print(f"| {name} | | SKIPPED: no Python with Optuna | | | | | | | |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            before = load()
            summary, trials, jobs = run(o.program, name, [command(o.epochs, sample_seconds), *sets, *o.set], folder)
        t, span = summary["tuning"], spans.setdefault(name, summary["makespan_seconds"])
        held = sum(float(row["device_seconds"]) for row in trials)
        best = t["best"]
        print(f"| {name} | {1000 * sample_seconds:g} ms | {t['finished']}, {t['stopped']}, {t['failed']} of {t['trials']} | {span:.0f} s "
              f"| {100 * best['value']:.1f} % | {best['at_seconds']:.0f} s | {held:.0f} s | {held / span:.2f} "
              f"| {summary['restarts']['total']} | {before}, {load()} |", flush=True)
        if t["failed"] or t["unfinished"] or len(trials) != t["trials"] or len(jobs) != t["trials"] or not short and t["trials"] != TRIALS:
            wrong.append(f"{name}: {t['failed']} trials failed, {t['unfinished']} did not end, {len(trials)} were run")
    static, elastic = spans.get("random, ASHA, static"), spans.get("random, ASHA, elastic")
    if static and elastic:
        change = elastic / static - 1
        print(f"\nASHA: the makespan of elastic is {100 * change:+.1f} % against static")
        if not short and change > -FASTER:
            wrong.append(f"ASHA that is elastic is not {FASTER:.0%} faster")
    if wrong:
        raise SystemExit("; ".join(wrong))


main()
