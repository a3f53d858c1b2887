#!/usr/bin/env python3
"""Writes a result of many benchmarks: copies of one benchmark of a real result, with every sample changed a little.

    benches/many_rows.py run.json many.json [--benchmarks 5000] [--processes 8] [--metrics latency,cpu-time]

Equal samples would be refused as repeated, so each is multiplied by 1 +/- a thousandth. The seed is fixed: the same run.json
gives the same file.
"""

import argparse
import copy
import json
import random

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("run")
parser.add_argument("output")
parser.add_argument("--benchmarks", type=int, default=5000)
parser.add_argument("--processes", type=int, default=8)
parser.add_argument("--metrics", help="keep only these, separated by commas")
arguments = parser.parse_args()

with open(arguments.run, encoding="utf-8") as file:
    run = json.load(file)
rng = random.Random(1)
kept = set(arguments.metrics.split(",")) if arguments.metrics else None
for side in run["sides"]:
    measured = side["benchmarks"][0]
    copies = []
    for number in range(arguments.benchmarks):
        one = copy.deepcopy(measured)
        one["name"] = f"model-{number:05d}/{measured['name']}"
        one["processes"] = one["processes"][: arguments.processes]
        for process in one["processes"]:
            samples = process["samples"]
            process["samples"] = {
                metric: [value * (1 + rng.uniform(-1e-3, 1e-3)) for value in values]
                for metric, values in samples.items()
                if kept is None or metric in kept
            }
        copies.append(one)
    side["benchmarks"] = copies
with open(arguments.output, "w", encoding="utf-8") as file:
    json.dump(run, file, indent=2)
