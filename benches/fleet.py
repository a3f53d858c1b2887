#!/usr/bin/env python3
"""Times plan, merge and reports of a suite that was divided over many machines, and prints each command's peak memory.

    benches/fleet.py BENCHGATE RUN [--models 2000] [--shards 40] [--folder FOLDER]

RUN is a run.json of paired blocks. Its first benchmark is copied as often as there are models, with other artifacts and
samples: one in twenty models is noisy and is measured up to the last block, the others are decided at the first look.
The seed is fixed.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("benchgate")
parser.add_argument("run")
parser.add_argument("--models", type=int, default=2000)
parser.add_argument("--shards", type=int, default=40)
parser.add_argument("--folder", help="where the suite is written [default: a temporary folder]")
arguments = parser.parse_args()
folder = pathlib.Path(arguments.folder or tempfile.mkdtemp())
folder.mkdir(exist_ok=True)
with open(arguments.run, encoding="utf-8") as file:
    template = json.load(file)
START = datetime.datetime(2026, 11, 24, tzinfo=datetime.timezone.utc)


def timed(*words):
    """Runs a command of benchgate in the suite's folder and prints what it took."""
    began = time.monotonic()
    with open(folder / "output", "wb") as output:
        child = subprocess.Popen([os.path.abspath(arguments.benchgate), *words], cwd=folder, stdout=output, stderr=subprocess.PIPE)
        messages = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    wall, seconds = time.monotonic() - began, usage.ru_utime + usage.ru_stime
    print(f"{' '.join(words[:1]):8} {wall:6.2f} s, {seconds:6.2f} s of processor time, {usage.ru_maxrss / 1024:4.0f} MiB, exit code {code}")
    if code not in (0, 10, 11):
        sys.exit(messages[-2000:])
    return wall, seconds


def suite():
    """A configuration of as many models, all of one source."""
    head, base = (next(side for side in template["sides"] if side["name"] == name) for name in ("head", "base"))
    pin = lambda side: f'version = "{side["toolchain"]["version"]}", commit = "{side["toolchain"]["compiler_commit"]}"'
    lines = [f'[suite]\nname = "fleet"\n[toolchain]\n{pin(head)}'.replace(", ", "\n"), f"[side.base]\ntoolchain = {{ {pin(base)} }}\n[side.head]"]
    lines += [f'[[model]]\nname = "m{at}"\nsource = "m.mlir"\nfunction = "main"' for at in range(arguments.models)]
    lines.append('[[target]]\nname = "cpu"\nbackend = "llvm-cpu"\ndevice = "local-task"\n')
    (folder / "benchgate.toml").write_text("\n".join(lines))
    (folder / "m.mlir").write_text("func.func @main() { return }\n")


def benchmark(measured, name, side, last, order, rng):
    """A copy of a benchmark with these many blocks."""
    one = dict(measured)
    one["name"], one["labels"] = name, {**measured["labels"], "model": name.split("/")[0]}
    digest = hashlib.sha256(f"{name} {side}".encode()).hexdigest()
    one["artifact"] = {**measured["artifact"], "vmfb_sha256": digest, "execution_sha256": digest}
    one["processes"] = []
    for block in range(last):
        for process in [known for known in measured["processes"] if known["slot"]["block"] == block % 12]:
            process, place = dict(process), order + 4 * block + process["slot"]["slot"]
            process["slot"], process["order"] = {**process["slot"], "block": block}, place
            process["started"] = (START + datetime.timedelta(milliseconds=100 * place)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            is_noisy = last > 12 and side == "head"
            level = rng.lognormvariate(0, 0.002) * ((0.8, 1.25)[block % 2] if is_noisy else 1)
            process["samples"] = {
                metric: [value * level * (1 + rng.uniform(0, 1e-3)) for value in [1e6] * len(values)]
                for metric, values in process["samples"].items()
            }
            process["telemetry"] = {"cpu": {"foreign": 0.01, "stolen": 0.01, "resolution": 0.5}}
            process["load_avg"] = [0.1, 0.1, 0.1]
            one["processes"].append(process)
    return one


def shards(plan):
    """A file for each shard, sealed as benchgate seals it: the hash of the same content on one line."""
    for shard in plan["shards"]:
        rng = random.Random(shard["shard"])
        file = {key: value for key, value in template.items() if key != "calibration"}
        file |= {key: plan[key] for key in ("benchgate", "suite", "design", "seed", "gate")}
        file["session"] = f"shard-{shard['shard']}"
        file["measure"] = {**file["measure"], "min_blocks": plan["min_blocks"], "max_blocks": plan["max_blocks"]}
        file["sides"] = []
        for planned in plan["sides"]:
            side = next(side for side in template["sides"] if side["name"] == planned["name"])
            benchmarks = [
                benchmark(side["benchmarks"][0], name, planned["name"], 24 if int(name[1:].split("/")[0]) % 20 == 0 else 12, 100 * at, rng)
                for at, name in enumerate(shard["benchmarks"])
            ]
            side = {**side, "benchmarks": benchmarks}
            side.pop("commit", None)
            file["sides"].append(side)
        ordered = {}
        for key in ORDER:
            if key == "shard":
                ordered[key] = {"plan": plan["sha256"], "shard": shard["shard"], "attempt": 1}
            elif key in file:
                ordered[key] = file[key]
        line = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)
        # Floats as serde_json writes them, and whole ones as benchgate does.
        line = re.sub(r"\b(\d)(?:\.(\d+))?e-05", lambda digits: f"0.0000{digits[1]}{digits[2] or ''}", line)
        line = re.sub(r"e-0(\d)", r"e-\1", re.sub(r"(\d)\.0(?=[,\]}])", r"\1", line))
        ordered["shard"]["sha256"] = hashlib.sha256(line.encode()).hexdigest()
        (folder / f"shard-{shard['shard']}.json").write_text(json.dumps(ordered, indent=2, ensure_ascii=False))


# In which a result has its fields.
ORDER = "schema benchgate suite session created complete design seed measure testbed metrics sides backends bundle shard shards gate calibration lints".split()

suite()
counted = [timed("plan", "--shards", str(arguments.shards))]
shards(json.loads((folder / "plan.json").read_text()))
size = sum(path.stat().st_size for path in folder.glob("shard-*.json"))
print(f"{arguments.models} models, {arguments.shards} shards, {size / 1e6:.0f} MB")
timed("merge", "shard-*.json", "--status")
counted.append(timed("merge", "shard-*.json", "--output", "run.json"))
timed("compare", "run.json")
counted.append(timed("report", "run.json", "--format", "html", "--output", "page.html"))
wall, processor = (sum(column) for column in zip(*counted))
print(f"plan, merge and report: {wall:.1f} s, {processor:.1f} s of processor time")
