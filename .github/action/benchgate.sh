#!/usr/bin/env bash
# Finds the benchgate that this action runs, and runs it. Everything else is decided there.
#
# In this order: the binary that the workflow names; the release whose SHA-256 is committed in
# releases.sha256 beside this script; a build of the sources that this action was checked out with.
# A release that is not what was committed is an error, never a reason to try the next.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_root=$(cd "$here/../.." && pwd)
fail() { printf '::error title=benchgate::%s\n' "$1"; exit 20; }

own_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source_root/Cargo.toml" | head -n 1)
version=${BENCHGATE_VERSION:-$own_version}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the input version is not a version"

installed() {
    # A token has no business in anything that installs.
    local archive sum folder
    unset GITHUB_TOKEN
    archive="benchgate-$version-$(uname -m)-unknown-linux-gnu.tar.gz"
    folder="${RUNNER_TOOL_CACHE:-${RUNNER_TEMP:?}}/benchgate/$version"
    sum=$(awk -v name="$archive" '$2 == name { print $1 }' "$here/releases.sha256")
    if [[ -n $sum ]]; then
        mkdir -p "$folder" || return 1
        if ! printf '%s  %s\n' "$sum" "$folder/$archive" | sha256sum --check --status 2>/dev/null; then
            curl --fail --silent --show-error --location --proto '=https' --retry 3 \
                --output "$folder/$archive.part" \
                "https://github.com/${GITHUB_ACTION_REPOSITORY:-benchgate/benchgate}/releases/download/v$version/$archive" >&2 \
                || { echo "download of $archive failed; binary-path needs none" >&2; return 1; }
            printf '%s  %s\n' "$sum" "$folder/$archive.part" | sha256sum --check --status \
                || { rm -f "$folder/$archive.part"; echo "$archive is not what was released" >&2; return 1; }
            mv "$folder/$archive.part" "$folder/$archive" || return 1
        fi
        tar -xzf "$folder/$archive" -C "$folder" --no-same-owner || return 1
        echo "$folder/benchgate"
    elif [[ $version == "$own_version" ]] && command -v cargo >/dev/null; then
        echo "no release of $version for $(uname -m) is committed: building it (minutes, once a version)" >&2
        cargo build --release --locked --quiet --manifest-path "$source_root/Cargo.toml" \
            --target-dir "$folder/build" >&2 || return 1
        echo "$folder/build/release/benchgate"
    else
        echo "there is no release $version for $(uname -m), and no cargo to build it; name one with binary-path" >&2
        return 1
    fi
}

if [[ -n ${BENCHGATE_BINARY_PATH:-} ]]; then
    binary=$BENCHGATE_BINARY_PATH
    [[ -x $binary ]] || fail "binary-path names no program that can be run"
else
    # A subshell: what it unset is still there afterwards.
    binary=$(installed) || fail "benchgate could not be installed; the log says why"
fi
exec "$binary" action
