#!/usr/bin/env python3
"""Generates a suite of many small models, and times planning, measuring two shards, merging and reports, with each
command's peak memory.

    benches/many_models.py BENCHGATE [--models 1200] [--tools FOLDER] [--folder FOLDER]

The tools are those of IREE 3.13.0 from PyPI, or the ones in FOLDER, whose version.py has their commit: the fake ones of
tests/fake_iree show what benchgate itself takes. Both sides are measured in four blocks; head has one more flag.
"""

import argparse
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("benchgate")
parser.add_argument("--models", type=int, default=1200)
parser.add_argument("--tools")
parser.add_argument("--folder", help="where the suite is written [default: a temporary folder]")
arguments = parser.parse_args()
folder = pathlib.Path(arguments.folder or tempfile.mkdtemp())

PIN = 'version = "3.13.0"\ncommit = "89ece87b89852100c0a4ac3d515e14842d090967"'
HEAD = """[suite]
name = "many-models"
[toolchain]
{pin}
[side.base]
[side.head]
flags = [{flag}]
[measure]
repetitions = 3
min-time = "1ms"
warmup = "0ms"
min-blocks = 4
max-blocks = 4
[[target]]
name = "cpu"
backend = "llvm-cpu"
device = "local-sync"
"""
MODEL = """[[model]]
name = "m{at}"
source = "models/m{at}.mlir"
inputs = ["3xf32=1"]
expected = ["data/m{at}.npy"]
tags = ["group-{group}"]
"""
# The comments are for the fake tools.
SOURCE = """// fake latency-us={latency}
// fake output={values}
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %c = arith.constant dense<[{added}]> : tensor<3xf32>
  %y = arith.addf %x, %c : tensor<3xf32>
  return %y : tensor<3xf32>
}}
"""


def npy(values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


def suite():
    pin = PIN
    if arguments.tools:
        tools = pathlib.Path(arguments.tools).absolute()
        commit = re.search(r"[0-9a-f]{40}", (tools / "version.py").read_text())[0]
        pin = f'version = "9.9.9"\ncommit = "{commit}"\npath = "{tools}"'
    for name in ("models", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    # The fake compiler copies what this library says into the module, so that both sides have different ones.
    (folder / "library.mlir").write_text("// fake bytes=1\n")
    flag = '"--iree-codegen-transform-dialect-library=library.mlir@any"' if arguments.tools else '"--iree-opt-level=O3"'
    text = [HEAD.format(pin=pin, flag=flag)]
    for at in range(arguments.models):
        text.append(MODEL.format(at=at, group=at % 12))
        values = [at + 1, at + 2, at + 4]
        added = ", ".join(f"{value - 1}.0" for value in values)
        source = SOURCE.format(values=",".join(map(str, values)), added=added, latency=100 + at % 7)
        (folder / f"models/m{at}.mlir").write_text(source)
        (folder / f"data/m{at}.npy").write_bytes(npy(values))
    (folder / "benchgate.toml").write_text("\n".join(text))


def timed(*words):
    """Runs a command of benchgate in the suite's folder and prints what it took; its children's memory is not its own."""
    began = time.monotonic()
    with open(folder / "output", "wb") as output:
        child = subprocess.Popen([os.path.abspath(arguments.benchgate), *words], cwd=folder, stdout=output, stderr=output)
        peak = 0
        while child.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
                peak = max([peak, *(int(kib) for kib in re.findall(r"VmHWM:\s+(\d+)", status))])
            except OSError:
                pass
            time.sleep(0.01)
    wall, text = time.monotonic() - began, (folder / "output").read_text(errors="replace")
    print(f"{' '.join(words[:5]):48} {wall:7.2f} s, {peak / 1024:4.0f} MiB, {len(text):8} bytes, exit code {child.returncode}", flush=True)
    if child.returncode not in (0, 10, 11):
        sys.exit(text[-2000:])
    return text


suite()
if not arguments.tools:
    timed("tools", "pin")
timed("plan", "--shards", "2")
for shard in ("1", "2"):
    timed("run", "--plan", "plan.json", "--shard", shard, "--run", f"shard-{shard}.json")
timed("merge", "shard-1.json", "shard-2.json", "--output", "run.json")
timed("compare", "run.json")
timed("compare", "run.json", "--format", "markdown", "--output", "page.md")
timed("report", "run.json", "--format", "html", "--output", "page.html")
