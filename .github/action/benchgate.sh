#!/usr/bin/env bash
# Finds the benchgate binary for this action and runs `benchgate action`, which does everything else.
#
# Uses the first of these: the binary that the workflow names; the release whose SHA-256 is
# committed in releases.sha256 next to this script; a build of the sources that this action was
# checked out with. If a release doesn't match the committed hash, the script fails and does not try
# the next source.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_root=$(cd "$here/../.." && pwd)
fail() { printf '::error title=benchgate::%s\n' "$1"; exit 20; }

# The script changes the folder instead of the runner, so that PWD contains the names of symbolic
# links in the path: a pull request can redirect these links.
[[ -z ${BENCHGATE_WORKING_DIRECTORY:-} ]] || CDPATH='' cd -- "$BENCHGATE_WORKING_DIRECTORY" || fail "the folder that the input working-directory names does not exist"

# This comes first, because a pull request can commit a result file, which must not be uploaded
# after a failure below.
case ${BENCHGATE_INPUT_COMMAND:-gate} in
    gate | run | merge) written=${BENCHGATE_INPUT_RUN:-run.json} ;;
    plan) written=${BENCHGATE_INPUT_PLAN:-plan.json} ;;
    *) written= ;;
esac
if [[ -n $written ]] && { ! rm -f -- "$written" || [[ -e $written || -L $written ]]; }; then
    fail "can't remove the previous $written"
fi

own_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source_root/Cargo.toml" | head -n 1)
version=${BENCHGATE_VERSION:-$own_version}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the input version is not a valid version"

# Prints the path of this version's released binary, from a verified archive.
released() {
    local archive=$1 sum=$2
    local folder="${RUNNER_TOOL_CACHE:-${RUNNER_TEMP:?}}/benchgate/$version"
    mkdir -p "$folder" || return 1
    if ! printf '%s  %s\n' "$sum" "$folder/$archive" | sha256sum --check --status 2>/dev/null; then
        curl --fail --silent --show-error --location --proto '=https' --retry 3 \
            --output "$folder/$archive.part" \
            "https://github.com/${GITHUB_ACTION_REPOSITORY:-benchgate/benchgate}/releases/download/v$version/$archive" >&2 \
            || { echo "download of $archive failed; use binary-path to run without a download" >&2; return 1; }
        printf '%s  %s\n' "$sum" "$folder/$archive.part" | sha256sum --check --status \
            || { rm -f "$folder/$archive.part"; echo "$archive does not match its SHA-256 in releases.sha256" >&2; return 1; }
        mv "$folder/$archive.part" "$folder/$archive" || return 1
    fi
    tar -xzf "$folder/$archive" -C "$folder" --no-same-owner || return 1
    echo "$folder/benchgate"
}

# Returns whether cargo builds with this version of Rust. rustup installs a missing version; without
# rustup, the compiler must already have this version.
rustc_is() {
    [[ -n $1 ]] || return 1
    ! command -v rustup >/dev/null || return 0
    [[ $(cd / && rustc --version 2>/dev/null) == "rustc $1 "* ]]
}

# Builds this action's own sources. Cargo and rustup look for configuration in the working folder
# and its parents, so they run in /, with a new cargo home: the workspace can't choose a compiler or
# a wrapper. In /, rustup would use its default compiler, so the version in this action's own
# rust-toolchain.toml is passed explicitly. The target folder belongs to this job and is named after
# the hash of the sources, so no other job can have left a binary there.
built() {
    local sources folder name channel
    local -a allowed=()
    channel=$(sed -n 's/^channel = "\([0-9][0-9.]*\)"$/\1/p' "$source_root/rust-toolchain.toml") || return 1
    if ! rustc_is "$channel"; then
        echo "building from source needs Rust $channel: install it, or rustup" >&2
        return 1
    fi
    sources=$(cd "$source_root" && find Cargo.toml rust-toolchain.toml Cargo.lock src crates schemas -type f -print0 2>/dev/null \
        | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1) || return 1
    folder="${RUNNER_TEMP:?}/benchgate-build/$sources"
    if ! (cd "$folder" 2>/dev/null && sha256sum --check --status --strict benchgate.sha256 2>/dev/null); then
        rm -rf "$folder" && mkdir -p "$folder/cargo-home" || return 1
        for name in PATH HOME TMPDIR RUSTUP_HOME HTTPS_PROXY https_proxy SSL_CERT_FILE SSL_CERT_DIR; do
            [[ -z ${!name:-} ]] || allowed+=("$name=${!name}")
        done
        echo "no release of $version for $(uname -m) is listed in releases.sha256: building from source (takes some minutes in each job)" >&2
        (cd / && env -i "${allowed[@]}" RUSTUP_TOOLCHAIN="$channel" CARGO_HOME="$folder/cargo-home" \
            cargo build --release --locked --quiet --manifest-path "$source_root/Cargo.toml" \
            --target-dir "$folder/build") >&2 || return 1
        mv "$folder/build/release/benchgate" "$folder/benchgate" || return 1
        (cd "$folder" && sha256sum benchgate >benchgate.sha256) || return 1
    fi
    echo "$folder/benchgate"
}

installed() {
    # Commands that download or build must not see the token.
    local archive sum
    unset GITHUB_TOKEN
    archive="benchgate-$version-$(uname -m)-unknown-linux-gnu.tar.gz"
    sum=$(awk -v name="$archive" '$2 == name { print $1 }' "$here/releases.sha256")
    if [[ -n $sum ]]; then
        released "$archive" "$sum"
    elif [[ $version == "$own_version" ]] && command -v cargo >/dev/null; then
        built
    else
        echo "there is no release $version for $(uname -m) and no cargo to build it; set binary-path to an installed benchgate" >&2
        return 1
    fi
}

if [[ -n ${BENCHGATE_BINARY_PATH:-} ]]; then
    binary=$BENCHGATE_BINARY_PATH
    # Without a slash, exec would search the PATH and could find a file other than the one tested here.
    [[ $binary == */* ]] || binary=./$binary
    [[ -f $binary && -x $binary ]] || fail "binary-path is not an executable file"
else
    # A subshell, so that GITHUB_TOKEN is still set afterwards.
    binary=$(installed) || fail "benchgate could not be installed; see the log"
fi
exec "$binary" action
