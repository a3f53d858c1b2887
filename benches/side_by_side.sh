#!/usr/bin/env bash
# Compares two versions of benchgate alternately, on one machine in one session. Measures the
# seconds until every row is decided, for the quickstart suite and for a pull request that makes
# four programs do 5 % more work.
#
#   benches/side_by_side.sh OLD NEW [ROUNDS] [BUSY_LOOPS]
#
# OLD and NEW are benchgate binaries. Meanwhile, BUSY_LOOPS programs compute half of the time, on
# any processor. A row that stays undecided counts with all of its seconds. Prints one line per
# gate: seconds of measuring, decided rows, exit code.
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2") rounds=${3:-1} loops=${4:-0}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
noise=()
trap 'kill "${noise[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

cp -r "$here/examples/quickstart" "$work/quickstart"

# Chains of identical stages; the change adds one to every twenty.
chain() { # NAME ROWS STAGES
  local shape="tensor<$2x$2xf32>"
  {
    echo "func.func @main(%x: $shape, %w: $shape) -> $shape {"
    echo "  %zero = arith.constant 0.0 : f32"
    echo "  %e = tensor.empty() : $shape"
    echo "  %f = linalg.fill ins(%zero : f32) outs(%e : $shape) -> $shape"
    local last="%x"
    for ((stage = 0; stage < $3; stage++)); do
      echo "  %s$stage = linalg.matmul ins($last, %w : $shape, $shape) outs(%f : $shape) -> $shape"
      last="%s$stage"
    done
    echo "  return $last : $shape"
    echo "}"
  } >"$work/change/models/$1.mlir"
}
chains() { for size in 48 64 96 128; do chain "chain-$size" $size "$1"; done; }
mkdir -p "$work/change/models"
cd "$work/change"
{
  printf '[suite]\nname = "chains"\n\n'
  sed -n '/^\[toolchain\]/,/^$/p' "$here/examples/quickstart/benchgate.toml"
  for size in 48 64 96 128; do
    printf '[[model]]\nname = "chain-%s"\nsource = "models/chain-%s.mlir"\nfunction = "main"\n' $size $size
    printf 'inputs = ["%sx%sxf32=0.001", "%sx%sxf32=0.001"]\n\n' $size $size $size $size
  done
  printf '[[target]]\nname = "cpu"\nbackend = "llvm-cpu"\ndevice = "local-task"\n'
} >benchgate.toml
cp "$here/examples/quickstart/benchgate.lock" .
chains 20
git init -q . && git add -A
git -c user.name=a -c user.email=a@b commit -qm base && git branch -q base
chains 21
git -c user.name=a -c user.email=a@b commit -qam change

for ((loop = 0; loop < loops; loop++)); do
  (while :; do timeout 0.5 sh -c 'while :; do :; done' || true; sleep 0.5; done) &
  noise+=($!)
done

# Time from the start of the first process to the start of the last one, plus the mean time of a
# process.
summary() { # WHO WHAT CODE
  python3 - "$work/run.json" "$work/out.json" "$@" <<'PYTHON'
import datetime, json, sys
run, verdict, who, what, code = sys.argv[1:]
starts = sorted(p["started"][:26].rstrip("Z") for side in json.load(open(run))["sides"]
                for b in side["benchmarks"] for p in b.get("processes", []))
at = [datetime.datetime.fromisoformat(start) for start in starts]
span = (at[-1] - at[0]).total_seconds() * len(at) / (len(at) - 1)
rows = [r for r in json.load(open(verdict))["rows"] if (r.get("metric") or {}).get("name", r.get("metric")) == "latency"]
words = [r["verdict"] for r in rows]
decided = sum(word != "inconclusive" for word in words)
print(f"{what:<11} {who:<4} {span:7.1f} s of measuring, {len(at):4} processes, {decided} of {len(rows)} rows decided "
      f"({', '.join(words)}), exit {code}", flush=True)
PYTHON
}
gate() { # WHO BINARY WHAT ARGUMENTS
  local code=0
  local run=--run # Versions before the vocabulary was unified say --run-output.
  if "$2" gate --help | grep -q -- --run-output; then run=--run-output; fi
  rm -f "$work/run.json"
  "$2" gate "${@:4}" "$run" "$work/run.json" --format json --output "$work/out.json" >/dev/null 2>"$work/log" || code=$?
  [ -f "$work/run.json" ] || { tail -5 "$work/log" >&2; exit 1; }
  summary "$1" "$3" "$code"
}
for ((round = 0; round < rounds; round++)); do
  for what in quickstart change; do
    case $what in
      quickstart) arguments=(-c "$work/quickstart/benchgate.toml") ;;
      change) arguments=(-c "$work/change/benchgate.toml" --base base) ;;
    esac
    if ((round % 2)); then
      gate new "$new" $what "${arguments[@]}" && gate old "$old" $what "${arguments[@]}"
    else
      gate old "$old" $what "${arguments[@]}" && gate new "$new" $what "${arguments[@]}"
    fi
  done
done
