"""Facts of generated code against their oracles: `llvm-readobj --notes` and IREE's own warning about spills, every value of every AMD kernel; and
compiling twice, which must change no kernel on any target.

usage: code_oracles.py BENCHGATE MODEL.mlir... -- VERSION=IREE-COMPILE...
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FACTS = {
    "spilled-registers": "vgpr_spill_count",
    "scratch-size": "private_segment_fixed_size",
    "shared-memory": "group_segment_fixed_size",
    "vector-registers": "vgpr_count",
    "accumulator-registers": "agpr_count",
    "scalar-registers": "sgpr_count",
}
TARGETS = {
    "gfx942": ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"],
    "sm_80": ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"],
    "vulkan": ["--iree-hal-target-device=vulkan"],
    "llvm-cpu": ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=x86-64-v3"],
}


def compile(compiler, model, target, folder, name):
    output = folder / f"{name}.vmfb"
    binaries = folder / f"{name}-bin"
    warns = [["--iree-rocm-enable-register-spill-warning"], []] if target == "gfx942" else [[]]
    for flags, renamed in ((TARGETS[target] + more, renamed) for more in warns for renamed in (False, True)):
        # Older releases call the target by another name, and some don't warn.
        tried = [flag.replace("--iree-rocm-", "--iree-hip-") if renamed else flag for flag in flags]
        done = subprocess.run(
            [compiler, model, "-o", output, f"--iree-hal-dump-executable-binaries-to={binaries}", *tried],
            capture_output=True, text=True, timeout=600,
        )
        if done.returncode == 0:
            return output, binaries, done.stderr
    return None, None, done.stderr


def kind(name):
    return re.sub(r"^.*_dispatch_\d+_", "", name) if re.search(r"_dispatch_\d+_.", name) else name


def rows(benchgate, base, head):
    done = subprocess.run([benchgate, "compare", base, head, "--format", "json", "--all"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"rows": [], "notes": [done.stderr.strip().splitlines()[0]]}


def notes(binaries):
    found = []
    for file in sorted(binaries.glob("*.hsaco")):
        text = subprocess.run(["llvm-readobj", "--notes", file], capture_output=True, text=True).stdout
        for part in re.split(r"\n  - \.agpr_count:", text)[1:]:
            part = ".agpr_count:" + part
            found.append({key: value for key, value in re.findall(r"^\s*\.(\w+): +(\S+)$", part, re.M)})
    return found


def main():
    benchgate, *rest = sys.argv[1:]
    models, compilers = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    counts = collections.Counter()
    for compiler in compilers:
        version, program = compiler.split("=", 1)
        for model in models:
            for target in TARGETS:
                folder = pathlib.Path(tempfile.mkdtemp())
                where = f"{version} {pathlib.Path(model).stem} {target}"
                module, binaries, said = compile(program, model, target, folder, "a")
                again, _, _ = compile(program, model, target, folder, "b")
                if not module or not again:
                    counts[f"{target}: not compiled"] += 1
                    print(where, "is not compiled:", said.strip().splitlines()[-1:] or "")
                    continue
                comparison = rows(benchgate, module, again)
                said_of = " ".join(comparison.get("notes", []))
                same = "all identical" in said_of or re.search(r"1 kernel: identical", said_of)
                counts[f"{target}: modules compiled twice, {'all' if same else 'NOT all'} kernels identical"] += 1
                if not same:
                    print(where, said_of)
                values = {}
                for row in comparison["rows"]:
                    metric = row.get("metric")
                    name = metric["name"] if isinstance(metric, dict) else metric
                    values[row["benchmark"], name] = (row.get("typical") or {}).get("base")
                counts[f"{target}: kernels"] += len({b for b, _ in values if not b.startswith("(all")})
                if target != "gfx942":
                    continue
                seen = collections.Counter()
                for kernel in notes(binaries):
                    name = kind(kernel["name"])
                    seen[name] += 1
                    number = f"{name} ({seen[name]})" if seen[name] > 1 else name
                    for metric, key in FACTS.items():
                        stated, found = float(kernel[key]), values.get((number, metric))
                        counts["gfx942: values equal to llvm-readobj's" if stated == found else "gfx942: values that DIFFER"] += 1
                        if stated != found:
                            print(where, number, metric, stated, found)
                    warned = re.search(rf"VGPRSpillCount: (\d+).*{re.escape(kernel['name'])}|{re.escape(kernel['name'])}.*VGPRSpillCount: (\d+)", said)
                    if warned:
                        stated = float(warned.group(1) or warned.group(2))
                        equal = stated == values.get((number, "spilled-registers"))
                        counts[f"gfx942: spill warnings {'equal' if equal else 'that DIFFER'}"] += 1
                    elif float(kernel["vgpr_spill_count"]) > 0:
                        counts["gfx942: spills without a warning"] += 1
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")


main()
