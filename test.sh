#!/usr/bin/env bash
# Everything that must hold before a change goes in: formatting, lints, all tests, documentation, licences.
# Needs Rust with rustfmt and clippy, a C linker (gcc), and the Debian packages that .ci/run installs: the verbs library
# with the driver of mlx5, programs that run on the simulated HCA, and Open MPI. Valgrind, where there is any, counts
# instructions. Open MPI 5 and MPICH 5 are installed with pip under target/.
set -euo pipefail
cd "$(dirname "$0")"

step() {
    printf '\n== %s\n' "$*"
}

need() {
    if ! "$@" --version >/dev/null 2>&1; then
        printf 'test.sh: "%s" cannot be run: %s\n' "$*" "$hint" >&2
        exit 1
    fi
}

hint='install Rust (https://rustup.rs)' need cargo
hint='rustup component add rustfmt' need cargo fmt
hint='rustup component add clippy' need cargo clippy
hint='apt-get install gcc libc6-dev' need cc

# Valgrind counts instructions, which is a gate; the others are the verbs library with its driver, its headers,
# programs of others that run on the simulated HCA, and an MPI. Missing is a failure and not a skip.
packages() {
    local missing=() prefix=()
    present() {
        eval "$1" >/dev/null 2>&1 || missing+=("${@:2}")
    }
    present 'command -v valgrind' valgrind libc6-dbg
    # Reads the man pages.
    present 'command -v groff' groff-base
    # What the Debian package depends on.
    present 'command -v dpkg-shlibdeps && command -v dpkg-architecture' dpkg-dev
    present 'command -v ibv_devinfo' ibverbs-utils
    present 'compgen -G "/usr/lib*/libibverbs/libmlx5-rdmav*.so" || compgen -G "/usr/lib/*/libibverbs/libmlx5-rdmav*.so"' \
        ibverbs-providers
    present 'test -e /usr/include/infiniband/verbs.h' libibverbs-dev
    present 'test -e /usr/include/rdma/fabric.h' libfabric-dev
    present 'command -v ib_send_lat' perftest
    present 'command -v ucx_perftest' ucx-utils
    # The C library is installed by its Makefile and found through pkg-config.
    present 'command -v make' make
    present 'command -v pkg-config' pkg-config
    present 'command -v c++' g++
    # Its layouts are compared with those that are mirrored here.
    present 'test -e /usr/include/ucp/api/ucp.h' libucx-dev
    present 'command -v mpirun' openmpi-bin
    present 'command -v mpicc' libopenmpi-dev
    # For emulated machines with soft-RoCE devices; their kernel is downloaded by the tests.
    present 'command -v qemu-system-x86_64' qemu-system-x86
    present 'command -v busybox' busybox-static
    present 'command -v rdma && command -v tc' iproute2
    present 'command -v xz' xz-utils
    # Opens the page of `tagmatch bench`.
    present 'command -v chromium' chromium fonts-dejavu-core
    # For the environments into which MPIs of other versions are installed from PyPI.
    present 'python3 -c "import ensurepip, venv"' python3-venv
    [ "${#missing[@]}" -eq 0 ] && return
    step "installing ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || prefix=(sudo -n)
    if ! "${prefix[@]}" apt-get -q update ||
        ! "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -qy install --no-install-recommends "${missing[@]}"; then
        printf 'test.sh: the tests need %s, and apt-get could not install them (see above).\n' "${missing[*]}" >&2
        printf 'test.sh: install these packages by hand and run this again.\n' >&2
        exit 1
    fi
}
packages

step 'formatting'
cargo fmt --all --check

step 'lints'
cargo clippy --locked --workspace --all-targets --all-features -- -D warnings

step 'what an embedder builds: the library without features'
RUSTFLAGS='-D warnings' cargo check --locked -p tagmatch --lib --no-default-features --target-dir target/embedded

# The last line: how many tests passed, also when something failed.
log=$(mktemp)
counts() {
    local status=$?
    printf '\n%s\n' "$(awk -f .ci/counts.awk "$log")"
    rm -f "$log"
    exit "$status"
}
trap counts EXIT

step 'tests (tidiness and licences among them)'
cargo test --locked --workspace --no-fail-fast 2>&1 | tee -a "$log"

# The rest is two rows of builds and runs that use one core each for the most part, in directories of their own below target/:
# side by side. What the first says is shown when it has ended.
aside=$(mktemp)
models() {
    # One clause of the offload rules is switched off at a time, or one bug is planted: such a build is for these tests alone.
    step 'tests of the model with single clauses switched off, and of the simulations with bugs planted'
    cargo test --locked -p tagmatch-sim --features ablation --test ablation &&
        cargo test --locked -p tagmatch-sim --features ablation --test endpoint_seeds bugs:: &&
        step 'documentation' &&
        RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
}
models >"$aside" 2>&1 &
models=$!
await_models() {
    local status=0
    wait "$models" || status=$?
    tee -a "$log" <"$aside"
    rm -f "$aside"
    return "$status"
}

first_command() {
    step 'the first command of the README'
    ./run.sh || return

    step 'the Debian package: built, installed into a directory, used from there, removed'
    package=$(packaging/debian/build.sh target/debian | tail -n 1) || return
    packaging/debian/check.sh "$package" || return

    # With what is built already, into a directory of its own.
    step 'cargo install, and the traces from another directory'
    cargo install --locked --path . --root target/installed --target-dir target || return
    installed=$PWD/target/installed/bin/tagmatch
    (cd / && "$installed" replay) || return

    step 'the recipe of Spack'
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' packaging/spack/packages/tagmatch/package.py
}
first=0
first_command || first=$?
await_models
[ "$first" -eq 0 ] || exit "$first"

step 'all is well'
