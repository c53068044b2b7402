"""Twenty PyTorch trainings on four declared devices under three policies, run and simulated, for docs/results/pytorch.md:
`make torch-twenty`.

python3 plugins/python/tests/torch_twenty.py QUARTET [POLICY...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[3]
CONFIG = "examples/torch/twenty.yaml"
WITHIN = 0.15

POLICIES = {
    "fifo": [],
    "tiresias": ["pipeline.allocation={type: tiresias, config: {thresholds: [30]}}"],
    "pollux": ["pipeline.allocation={type: pollux, config: {weights: none, restart_overhead: 5s}}", "pipeline.placement.type=proposed",
               "pipeline.elasticity.job={type: goodput, config: {declared_work: false}}"],
}


def quartet(program, command, sets, folder):
    """The summary of a run."""
    arguments = [program, command, "-q", "-o", "json", "-f", CONFIG, "--out", folder]
    for s in sets:
        arguments += ["--set", s]
    if command == "run":
        arguments += ["--fresh", "--metrics", "off"]
    # The jobs' python3 is the one of this script.
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    done = subprocess.run(arguments, cwd=ROOT, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command} ended with {done.returncode}: {' '.join(arguments)}")
    return json.loads(done.stdout)


def load():
    with open("/proc/loadavg") as file:
        return file.read().split()[0]


def main():
    program, *names = sys.argv[1:]
    wrong = []
    print("| policy | jobs that ended | mean JCT, simulated | run | difference | makespan, simulated | run | restarts, simulated | run "
          "| load before, after |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in names or POLICIES:
        with tempfile.TemporaryDirectory() as folder:
            sets = [f"name={name}", *POLICIES[name]]
            told = quartet(program, "simulate", sets, folder)
            before = load()
            # A map is merged into the one before: the simulator's goes first.
            found = quartet(program, "run", [*sets, "backend=null", "backend={type: local}"], folder)
        (told_jct, told_span, told_restarts), (jct, span, restarts) = (
            (s["jct_seconds"]["mean"], s["makespan_seconds"], s["restarts"]["total"]) for s in (told, found))
        ended, of = found["jobs"]["completed"], found["jobs"]["submitted"]
        print(f"| {name} | {ended} of {of} | {told_jct:.1f} s | {jct:.1f} s | {100 * (jct / told_jct - 1):+.1f} % "
              f"| {told_span:.0f} s | {span:.0f} s | {told_restarts} | {restarts} | {before}, {load()} |", flush=True)
        if ended < of or abs(jct / told_jct - 1) > WITHIN:
            wrong.append(name)
    if wrong:
        raise SystemExit(f"not within {WITHIN:.0%}, or not all ended: {', '.join(wrong)}")


main()
