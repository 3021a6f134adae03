#!/usr/bin/env bash
# The README's first command: builds everything, and runs an MPI program over the libfabric provider.
# Needs Rust and a Debian machine. A C compiler and Open MPI are installed with apt-get where there is none.
set -euo pipefail
cd "$(dirname "$0")"
built=${CARGO_TARGET_DIR:-target}/release
program=storm

step() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf 'run.sh: %s\n' "$@" >&2
    exit 1
}

# Install packages, or say that somebody must.
install() {
    local prefix=()
    step "installing $*"
    [ "$(id -u)" -eq 0 ] || prefix=(sudo -n)
    if ! "${prefix[@]}" apt-get -q update ||
        ! "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"; then
        fail "apt-get could not install $* (see above)." 'Install these packages by hand and run this again.'
    fi
}

# The first mpirun that can run over the provider, with a compiler beside it. Where others are installed too, Debian
# calls Open MPI's mpirun.openmpi and mpicc.openmpi.
find_mpi() {
    local suffix
    for suffix in '' .openmpi; do
        mpirun=mpirun$suffix mpicc=mpicc$suffix
        if command -v "$mpirun" >/dev/null && command -v "$mpicc" >/dev/null &&
            "$built/tagmatch" env --mpirun "$mpirun" >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

command -v cargo >/dev/null || fail 'there is no cargo: install Rust (https://rustup.rs) and run this again.'
command -v cc >/dev/null || install gcc libc6-dev

step 'building the command line, the libfabric provider and the simulated card'
cargo build --release --locked -p tagmatch -p tagmatch-fi -p tagmatch-hca

if ! find_mpi; then
    install openmpi-bin libopenmpi-dev
    if ! find_mpi; then
        "$built/tagmatch" env --mpirun mpirun >/dev/null || true
        fail 'there is no MPI that can be run over the provider (see above), although openmpi-bin is installed.'
    fi
fi

step "running an MPI program over the provider: tests/mpi/programs/$program.c, everyone to everyone, 4 ranks"
mkdir -p "$built/mpi"
"$mpicc" -std=c11 -D_XOPEN_SOURCE=700 -O2 -pthread -o "$built/mpi/$program" "tests/mpi/programs/$program.c"
"$built/tagmatch" mpirun -v --mpirun "$mpirun" -n 4 "$built/mpi/$program"
