#!/usr/bin/env bash
# Exports and compiles the zoo for llvm-cpu with a cold cache, twice: with benchgate, and with a
# script that runs the same tools one after another. Prints seconds, how busy the processors were,
# and the ratio.
#
#   benchgate tools install --config examples/zoo/benchgate.toml     # once: gigabytes
#   examples/zoo/side-by-side.sh target/release/benchgate [FILTER]
#
# FILTER is a regular expression on `model@exporter`, by default the exporters of the torch environment.
set -euo pipefail

benchgate=$(realpath "$1")
filter=${2:-@(torch-mlir|iree-turbine|onnx)$}
zoo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
installed=${BENCHGATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/benchgate}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Processor time of all processors together, in hundredths of a second.
worked() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }
timed() {
    local what=$1 begun ended before after
    shift
    before=$(worked) begun=$EPOCHREALTIME
    "$@" > "$folder/$what.log" 2>&1 || { tail -n 5 "$folder/$what.log"; exit 1; }
    ended=$EPOCHREALTIME after=$(worked)
    awk -v what="$what" -v wall="$(echo "$ended $begun" | awk '{ print $1 - $2 }')" -v work="$((after - before))" -v cores="$(nproc)" \
        'BEGIN { printf "%-10s %7.1f s, processors %.0f %% busy\n", what, wall, work / wall / cores }' | tee -a "$folder/times"
}

# This cache contains the tools but none of their results.
mkdir "$folder/cache"
ln -s "$installed/tools" "$installed/python" "$folder/cache/"
by_benchgate() {
    "$benchgate" run --config "$zoo/benchgate.toml" --cache-dir "$folder/cache" --work-dir "$folder/work" \
        --until compile --bundle "$folder/zoo.bundle" --filter "${filter%\$}/cpu/"
}

python=$(for python in "$installed"/python/*/bin/python; do
    "$python" -c 'import torch_mlir, iree.turbine' 2>/dev/null && echo "$python" && break
done)
compile=$(for tools in "$installed"/tools/*/compiler/iree/compiler/_mlir_libs/iree-compile; do
    "$tools" --version 2>&1 | grep -q '3\.13\.0' && echo "$tools" && break
done)
one_by_one() {
    local name model exporter out
    grep -oP '^name = "\K[^"]+' "$zoo/benchgate.toml" | while read -r model; do
        grep -q "^source = \"zoo:$model\"" "$zoo/benchgate.toml" || continue
        for exporter in torch-mlir iree-turbine onnx; do
            name="$model@$exporter"
            [[ $name =~ $filter ]] || continue
            out="$folder/one/$name"
            mkdir -p "$out"
            echo "{\"id\": 0, \"source\": \"zoo:$model\", \"preset\": \"small\", \"exporter\": \"$exporter\", \"out\": \"$out\"}" \
                | PYTHONPATH="$zoo/../../python" "$python" -B -m benchgate_export
            # Not every pair can be exported; benchgate's rows say which.
            [ -e "$out/main.mlir" ] || continue
            "$compile" "$out/main.mlir" -o "$out/main.vmfb" --iree-hal-target-device=local \
                --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=host
        done
    done
}

timed benchgate by_benchgate
timed one-by-one one_by_one
awk '{ seconds[$1] = $2 } END { printf "benchgate is %.2f × as fast\n", seconds["one-by-one"] / seconds["benchgate"] }' "$folder/times"
