"""Compares what benchgate says of onnx_ops with what iree-run-module says, test by test.

    python3 agreement.py CHECKOUT RUN_JSON TARGET --tools FOLDER [--kept RESULTS]

Compiles every test of TARGET with the flags of its `[[target]]` in CHECKOUT/benchgate.toml, calls `iree-run-module` with
the test's own file of flags, and prints how often both agree, and each test where they don't. FOLDER holds the two tools.
What they said is kept in RESULTS, so that an interrupted comparison goes on. Needs Python 3.11 or newer.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib


def call(arguments, folder, seconds):
    try:
        return subprocess.run(arguments, cwd=folder, capture_output=True, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def by_tools(folder, source, target, tools):
    """The suite's own answer: `compile`, `run` (failed, or a wrong output) or `pass`."""
    flags = ["--iree-hal-target-device=" + {"llvm-cpu": "local"}.get(target["backend"], target["backend"])]
    if target["backend"] == "llvm-cpu":
        flags.append("--iree-hal-local-target-device-backends=llvm-cpu")
    with tempfile.TemporaryDirectory() as scratch:
        module = f"{scratch}/module.vmfb"
        compiler = [tools / "iree-compile", source, "-o", module, *flags, *target.get("flags", [])]
        if not call(compiler, folder, 300):
            return "compile"
        runner = [tools / "iree-run-module", f"--module={module}", f"--device={target['device']}"]
        runner += [*target.get("run-flags", []), "--flagfile=run_module_io_flags.txt"]
        return "pass" if call(runner, folder, 120) else "run"


def by_benchgate(record):
    """The same three words. Outputs that agree with a constant reference are `VERIFIER_SKIPPED` and have a check each."""
    outcome = record["outcome"]
    if outcome["status"] != "ok":
        return "compile" if outcome.get("stage") in ("export", "compile") else "run"
    verification = record.get("verification") or {}
    if verification.get("code") == "VERIFIER_SKIPPED" and verification.get("outputs"):
        return "pass"
    return {"PASS": "pass", "FAIL": "run"}.get(verification.get("code"), "unverified")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("target")
    parser.add_argument("--tools", type=lambda folder: pathlib.Path(folder).absolute(), required=True)
    parser.add_argument("--kept", type=pathlib.Path, default=pathlib.Path("agreement.jsonl"))
    args = parser.parse_args()
    config = tomllib.loads((args.checkout / "benchgate.toml").read_text())
    target = next(target for target in config["target"] if target["name"] == args.target)
    sources = {model["name"]: model["source"] for model in config["model"]}
    kept = {}
    if args.kept.exists():
        kept = dict(json.loads(line) for line in args.kept.read_text().splitlines())
    records = json.loads(args.run.read_text())["sides"][-1]["benchmarks"]
    counts, disagreeing = collections.Counter(), []
    for record in records:
        model, of_target, _ = record["name"].split("/")
        if of_target != args.target:
            continue
        if model not in kept:
            source = args.checkout / sources[model]
            kept[model] = by_tools(source.parent, source.name, target, args.tools)
            with args.kept.open("a") as results:
                results.write(json.dumps([model, kept[model]]) + "\n")
        ours = by_benchgate(record)
        counts[kept[model], ours] += 1
        if kept[model] != ours:
            disagreeing.append(f"{model}: {kept[model]} by iree-run-module, {ours} by benchgate")
    for (theirs, ours), count in sorted(counts.items()):
        print(f"{count:5}  {theirs} by iree-run-module, {ours} by benchgate")
    print(f"{sum(counts.values())} tests, {len(disagreeing)} disagree", *disagreeing, sep="\n")
    return 1 if disagreeing else 0


if __name__ == "__main__":
    sys.exit(main())
