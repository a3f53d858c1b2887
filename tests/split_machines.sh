#!/usr/bin/env bash
# A bundle made in one clean system is measured in another that has neither Python nor a compiler.
#
#   tests/split_machines.sh BENCHGATE WITH WITHOUT
#
# BENCHGATE is a binary that runs in both. WITH and WITHOUT are roots of two systems: the first with python3 and
# its venv module, the second with neither python3 nor any compiler. For example, of Debian:
#
#   debootstrap --variant=minbase --include=ca-certificates,python3-venv bookworm WITH
#   debootstrap --variant=minbase bookworm WITHOUT
#
# Needs root (chroot, private mounts, a private network). The second system has no network. Both are left as found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$#" -eq 3 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
benchgate=$(realpath "$1") with=$(realpath "$2") without=$(realpath "$3")
readonly FOLDER=tmp/benchgate-split

say() { printf '\n== %s\n' "$*"; }
clean() { rm -rf "${with:?}/$FOLDER" "${without:?}/$FOLDER"; }
trap clean EXIT
clean

# What this machine's own network needs, where it needs something.
kept=()
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
    if [ -n "${!name:-}" ]; then kept+=("$name=${!name}"); fi
done

# inside ROOT UNSHARE-OPTION… -- COMMAND: mounts are private and go with the last process.
inside() {
    local root=$1 options=(); shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    unshare --mount --pid --fork --kill-child "${options[@]}" bash -euc '
        root=$1; shift
        mount -t proc proc "$root/proc"
        mount --bind -o ro /sys "$root/sys"
        mount --bind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/run" && mkdir "$root/run/lock"
        exec env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin "$@"' \
        inside "$root" "${kept[@]}" chroot "$root" "$@"
}

mkdir -p "$with/$FOLDER" "$without/$FOLDER"
cp -r examples/quickstart "$with/$FOLDER/"
cp "$benchgate" "$with/$FOLDER/benchgate"
cp "$benchgate" "$without/$FOLDER/benchgate"

say "the first system: $(. "$with/etc/os-release"; echo "$PRETTY_NAME")"
inside "$with" -- sh -c "python3 --version"
inside "$with" -- sh -ec "
    cd /$FOLDER/quickstart
    ../benchgate gate --cache-dir /$FOLDER/cache --until compile --bundle ../quickstart.bundle 2>../log || { tail -30 ../log; exit 1; }
    tail -3 ../log" | tee "$with/$FOLDER/said"
sha256=$(sed -n 's/^sha256 //p' "$with/$FOLDER/said")
say "what is in the bundle"
tar -tvf "$with/$FOLDER/quickstart.bundle" | awk '{ print $3, $6 }'

say "the second system: $(. "$without/etc/os-release"; echo "$PRETTY_NAME"), without network"
cp "$with/$FOLDER/quickstart.bundle" "$without/$FOLDER/"
inside "$without" --net -- sh -c '
    for program in python3 python gcc cc clang ld iree-compile git; do
        if command -v "$program"; then echo "$program is there: this proves nothing"; exit 1; fi
    done
    echo "none of python3, python, gcc, cc, clang, ld, iree-compile, git"
    echo "network: $(cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d " \n")"'
code=0
inside "$without" --net -- sh -c "
    cd /$FOLDER
    ./benchgate gate --cache-dir cache --from verify --bundle quickstart.bundle --bundle-sha256 $sha256" || code=$?
echo "exit code $code"

say "what run.json says"
if command -v python3 >/dev/null; then
    python3 - "$without/$FOLDER/run.json" <<'P'
import json, sys
run = json.load(open(sys.argv[1]))
print("bundle", run["bundle"]["sha256"], "made", run["bundle"]["created"])
for side in run["sides"]:
    for b in side["benchmarks"]:
        print(side["name"], b["name"], b["outcome"]["status"], b["verification"]["code"], len(b.get("processes", [])), "processes")
P
fi

say "a bundle with one byte changed"
size=$(stat -c %s "$without/$FOLDER/quickstart.bundle")
printf 'X' | dd of="$without/$FOLDER/quickstart.bundle" bs=1 seek=$((size / 2)) conv=notrunc status=none
changed=0
inside "$without" --net -- sh -c "cd /$FOLDER && ./benchgate gate --cache-dir cache --from verify --bundle quickstart.bundle" || changed=$?
echo "exit code $changed"
[ "$changed" -eq 21 ] || exit 1
[ "$code" -eq 0 ] || [ "$code" -eq 10 ] || exit 1
