"""Facts of generated code against other tools that read the same code, every value of every kernel; and compiling twice, which must change no
kernel.

usage: code_oracles.py BENCHGATE PTXAS FOLDER MODEL.mlir... -- VERSION=IREE-COMPILE...

`benchgate run` reads the facts of each model for five targets (`judge = "code"`). IREE-COMPILE compiles the same model again and keeps what it
assembled: llvm-readobj, ptxas, spirv-dis and objdump read that. Nothing in this file parses a module. FOLDER keeps both, so that a second run
only compares.
"""

import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

CUDA = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"]
TARGETS = {
    "gfx942": ("hip", ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", "--iree-rocm-enable-register-spill-warning"]),
    "sm_80": ("cuda", CUDA),
    "sm_90": ("cuda", CUDA),
    "vulkan": ("vulkan", ["--iree-hal-target-device=vulkan"]),
    "llvm-cpu": (
        "llvm-cpu",
        ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=x86-64-v3"],
    ),
}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def flags(compiler, wanted):
    """Older releases call AMD's target by another name, and the oldest don't warn of spills."""
    known = output(compiler, "--help")
    renamed = [flag if flag.split("=")[0] + " " in known or flag.split("=")[0] + "=" in known else flag.replace("-rocm-", "-hip-") for flag in wanted]
    return [flag for flag in renamed if flag.split("=")[0] in known]


# Oracles: a list of (kernel, {fact: value}), in the order of the kernels' numbers.


def in_order(found):
    """By the numbers in the names, which are in the order of the module."""
    return sorted(found, key=lambda kernel: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", kernel[0])])


def readobj(folder, _):
    keys = {
        "spilled-registers": "vgpr_spill_count",
        "scratch-size": "private_segment_fixed_size",
        "shared-memory": "group_segment_fixed_size",
        "vector-registers": "vgpr_count",
        "accumulator-registers": "agpr_count",
        "scalar-registers": "sgpr_count",
    }
    for file in folder.glob("bin/*.hsaco"):
        text = output("llvm-readobj", "--notes", file)
        for part in re.split(r"\n  - \.agpr_count:", text)[1:]:
            stated = dict(re.findall(r"^\s*\.(\w+): +(\S+)$", ".agpr_count:" + part, re.M))
            yield stated["name"], {fact: float(stated[key]) for fact, key in keys.items()}


def warned(said):
    """Spills of IREE's own warning, by kernel."""
    found = {}
    for line in said.splitlines():
        spills, kernel = re.search(r"VGPRSpillCount: (\d+)", line), re.search(r"\w+_dispatch_\d+\w*", line)
        if spills and kernel:
            found[kernel.group()] = float(spills.group(1))
    return found


def assembled(ptxas, processor):
    def read(folder, _):
        dynamic = {}
        for export in re.split(r"hal\.executable\.export public @", (folder / "targets.mlir").read_text())[1:]:
            local = re.search(r"workgroup_local_memory = (\d+)", export.split("builtin.module")[0])
            dynamic[re.match(r'"?([\w$.]+)', export).group(1)] = int(local.group(1)) if local else 0
        for file in folder.glob("bin/*.ptx"):
            log = subprocess.run([ptxas, "-v", f"-arch={processor}", "-o", "/dev/null", file], capture_output=True, text=True, check=True)
            text = file.read_text()
            for part in log.stderr.split("Compiling entry function '")[1:]:
                name = part.split("'")[0]
                used = re.search(r"Used (\d+) registers.*", part)
                static = re.search(r"(\d+) bytes smem", used.group())
                body = re.search(rf"\.entry {re.escape(name)}\(.*?\n}}", text, re.S).group().split("\n{\n", 1)[1]
                code = [re.sub(r"^@!?%p\d+\s+", "", line.strip()) for line in body.splitlines()]
                code = [line for line in code if re.match(r"[a-z]", line)]
                yield name, {
                    "spilled-registers": -(-int(re.search(r"(\d+) bytes spill stores", part).group(1)) // 4),
                    "scratch-size": int(re.search(r"(\d+) bytes stack frame", part).group(1)),
                    "vector-registers": int(used.group(1)),
                    # The caller adds what the compiler did not lay out.
                    "shared-memory": int(static.group(1) if static else 0)
                    + (dynamic[name] if "__dynamic_shared_memory__" in body else 0),
                    "matrix-instructions": sum(bool(re.match(r"w?mma\.(sync|mma)", line)) for line in code),
                    "instructions": len(code),
                }

    return read


def spirv(folder, problems):
    for file in folder.glob("bin/*.spv"):
        valid = subprocess.run(["spirv-val", "--target-env", "vulkan1.3", "--scalar-block-layout", file], capture_output=True, text=True)
        if valid.returncode:
            problems[f"spirv-val: {valid.stderr.strip().splitlines()[0][:120]}"] += 1
        text = output("spirv-dis", "--raw-id", "--no-header", "--no-indent", file)
        code = [line.split(" = ")[-1].split()[0] for line in text.splitlines()]
        bytes_of, scratch = {}, 0
        for name, kind, rest in re.findall(r"^(%\d+) = (Op\w+) ?(.*)$", text, re.M):
            words = rest.split()
            if kind in ("OpTypeInt", "OpTypeFloat"):
                bytes_of[name] = int(words[0]) // 8, False
            elif kind == "OpTypeBool":
                bytes_of[name] = 1, False
            elif kind == "OpTypeVector":
                bytes_of[name] = bytes_of[words[0]][0] * int(words[1]), False
            elif kind == "OpConstant":
                bytes_of[name] = words[1]
            elif kind == "OpTypeArray" and words[0] in bytes_of:
                bytes_of[name] = bytes_of[words[0]][0] * int(bytes_of[words[1]]), True
            elif kind == "OpTypePointer":
                bytes_of[name] = bytes_of.get(words[1])
            elif kind == "OpVariable" and words[1] in ("Function", "Private") and bytes_of.get(words[0], (0, False))[1]:
                scratch += bytes_of[words[0]][0]
        yield re.search(r'OpEntryPoint \w+ %\d+ "([^"]+)"', text).group(1), {
            "scratch-size": scratch,
            "matrix-instructions": code.count("OpCooperativeMatrixMulAddKHR"),
            "instructions": len(code) - code.index("OpFunction"),
            "code-size": file.stat().st_size,
        }


def objdump(folder, _):
    for file in folder.glob("mid/*.o"):
        symbols = re.findall(r"^\w+ (\w+) [tT] (\S+)$", output("nm", "--print-size", file), re.M)
        sizes = {name: size for size, name in symbols}
        text = output("objdump", "--disassemble", "--disassembler-options=intel", "--no-show-raw-insn", "--wide", file)
        for part in re.split(r"\n\w+ <(?=[^>]+>:\n)", text)[1:]:
            name, listing = part.split(">:\n", 1)
            # The compiler's own library of functions, most of which the linker leaves out.
            if "_dispatch_" not in name:
                continue
            lines = [line for line in re.findall(r"^ *[0-9a-f]+:\s+(\S.*)$", listing, re.M) if not line.startswith("(bad)")]
            widths, scalar, frames = collections.Counter(), 0, [0]
            for line in lines:
                line = line.split("#")[0]
                word, *rest = line.split(None, 1)
                plain = word.removeprefix("v")
                if re.search(r"s[sd]$", plain) and not re.match(r"mov|broadcast|p|gather|scatter", plain) or re.match(r"cvtt?s[sd]2si", plain):
                    scalar += 1
                    continue
                found = re.findall(r"\b([xyz])mm\d+", re.sub(r"\[.*?\]", "", " ".join(rest)))
                if found:
                    widths[max(found)] += 1
                if word == "sub" and rest[0].startswith("rsp,"):
                    size = re.fullmatch(r"rsp,0x([0-9a-f]+)", rest[0].strip())
                    size = int(size.group(1), 16) if size else None
                    frames.append(size if size is None or size < 1 << 63 else 0)
            facts = {
                "instructions": len(lines),
                "scalar-float-instructions": scalar,
                "code-size": int(sizes[name], 16),
                "vector-128-instructions": widths["x"],
                "vector-256-instructions": widths["y"],
                "vector-512-instructions": widths["z"],
            }
            yield name, facts if None in frames else facts | {"stack-frame": max(frames)}


def compiled(compiler, model, target, folder):
    """Compiles a model again, with what the oracles read; the compiler's messages, or `None` if it refuses the model."""
    done = folder / "said.txt"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [compiler, model, *flags(compiler, TARGETS[target][1])]
        dumps = [f"--iree-hal-dump-executable-{kind}-to={folder / name}" for kind, name in (("binaries", "bin"), ("intermediates", "mid"))]
        run = subprocess.run([*command, *dumps, "-o", folder / "again.vmfb"], capture_output=True, text=True, timeout=1800)
        if target == "sm_80" and run.returncode == 0:
            wanted = ["--compile-to=executable-targets", "--mlir-elide-elementsattrs-if-larger=8", "-o", folder / "targets.mlir"]
            subprocess.run([*command, *wanted], capture_output=True, check=True)
        done.write_text(run.stderr if run.returncode == 0 else "REFUSED " + run.stderr)
    said = done.read_text()
    return None if said.startswith("REFUSED ") else said


def suite(version, compiler, models, folder):
    commit = re.search(r"@ ([0-9a-f]{40})", output(compiler, "--version")).group(1)
    tree = folder / "tree"
    tree.mkdir()
    for file in (compiler, *compiler.parent.glob("libIREECompiler.so*")):
        (tree / file.name).symlink_to(file)
    # Nothing is run, and some compilers on the package index have no runtime there.
    for tool in ("iree-run-module", "iree-benchmark-module", "iree-dump-module"):
        (tree / tool).touch(0o755)
    parts = [f'[suite]\nname = "oracles"\n[toolchain]\nversion = "{version}"\ncommit = "{commit}"\npath = "tree"\n']
    for model in models:
        (folder / f"{model.stem}.mlir").write_bytes(model.read_bytes())
        parts.append(f'[[model]]\nname = "{model.stem}"\nsource = "{model.stem}.mlir"\n')
    for name, (backend, wanted) in TARGETS.items():
        own = [flag for flag in flags(compiler, wanted) if not re.match("--iree-hal-|.*-warning$", flag)]
        more = f'ptxas-arch = "{name}"\n' if backend == "cuda" else ""
        parts.append(f'[[target]]\nname = "{name}"\nbackend = "{backend}"\njudge = "code"\nflags = {json.dumps(own)}\n{more}')
    (folder / "benchgate.toml").write_text("\n".join(parts))


def measured(benchgate, version, compiler, models, folder):
    """Facts that benchgate reads, by model, target, kernel and fact; and the folder of its modules."""
    record = folder / "run.json"
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        suite(version, compiler, models, folder)
        output(benchgate, "tools", "pin", "--config", folder / "benchgate.toml")
        subprocess.run(
            [benchgate, "run", "--config", folder / "benchgate.toml", "--run", record, "--keep-modules", folder / "modules"], capture_output=True
        )
    facts = collections.defaultdict(dict)
    for row in json.loads(record.read_text())["sides"][0]["benchmarks"]:
        model, target, _ = row["name"].split("/")
        for stated in row.get("values", []):
            fact, _, kernel = stated["metric"].partition(" of ")
            if kernel:
                facts[model, target][kernel, fact] = stated["value"]
    return facts, folder / "modules"


def numbered(name, seen):
    """The name in benchgate's tables: without the running number, the second of a kind with its own."""
    name = re.sub(r"^.*?_dispatch_\d+_(?=.)", "", name)
    seen[name] += 1
    return f"{name} ({seen[name]})" if seen[name] > 1 else name


def main():
    benchgate, ptxas, folder, *rest = sys.argv[1:]
    folder = pathlib.Path(folder).absolute()
    models = [pathlib.Path(model).absolute() for model in rest[: rest.index("--")]]
    named = [compiler.split("=", 1) for compiler in rest[rest.index("--") + 1 :]]
    compilers = {version: pathlib.Path(compiler).absolute() for version, compiler in named}
    oracles = {
        "gfx942": readobj,
        "sm_80": assembled(ptxas, "sm_80"),
        "sm_90": assembled(ptxas, "sm_90"),
        "vulkan": spirv,
        "llvm-cpu": objdump,
    }
    totals, problems = collections.defaultdict(collections.Counter), collections.Counter()
    for version, compiler in compilers.items():
        facts, modules = measured(benchgate, version, compiler, models, folder / version / "suite")
        again = {(model, target): folder / version / model.stem / target for model in models for target in TARGETS if target != "sm_90"}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = dict(zip(again, pool.map(lambda key: compiled(compiler, *key, again[key]), again)))
        for model in models:
            for target, oracle in oracles.items():
                key = (model, "sm_80" if target == "sm_90" else target)
                count, where = totals[target], f"{version} {model.stem} {target}"
                found = facts.get((model.stem, target), {})
                if said[key] is None or not found:
                    count["refused by the compiler" if said[key] is None and not found else "modules that only one side has"] += 1
                    if said[key] is not None or found:
                        print(where, "only one side has code")
                    continue
                count["modules"] += 1
                module = modules / f"{model.stem}-{target}.vmfb"
                command = [benchgate, "compare", module, again[key] / "again.vmfb", "--format", "json", "--all"]
                compared = subprocess.run(command, capture_output=True, text=True)
                notes = " ".join(json.loads(compared.stdout).get("notes", []))
                identical = "all identical" in notes or re.search(r"\b1 kernel: identical", notes)
                count["modules compiled twice, all kernels identical" if identical else "modules compiled twice that DIFFER"] += 1
                if not identical:
                    print(where, notes)
                seen, unseen = collections.Counter(), {kernel for kernel, _ in found}
                warnings = warned(said[key]) if target == "gfx942" else {}
                for kernel, stated in in_order(oracle(again[key], problems)):
                    name = numbered(kernel, seen)
                    unseen.discard(name)
                    count["kernels"] += 1
                    if kernel in warnings:
                        count["spill warnings"] += 1
                        stated = stated | {"spilled-registers": warnings[kernel]}
                    for fact, value in stated.items():
                        equal = found.get((name, fact)) == value
                        count["values equal" if equal else "values that DIFFER"] += 1
                        if not equal:
                            print(where, name, fact, "stated", value, "found", found.get((name, fact)))
                for name in unseen:
                    count["kernels that the oracle lacks"] += 1
                    print(where, name, "is not in the oracle")
    columns = sorted({what for count in totals.values() for what in count})
    print("| target |", " | ".join(columns), "|")
    print("|---|" + "--:|" * len(columns))
    for target, count in totals.items():
        print(f"| {target} |", " | ".join(f"{count[what]:,}" for what in columns), "|")
    for problem, number in problems.most_common():
        print(f"{number:6} {problem}")


main()
