#!/usr/bin/env bash
# Installs the Debian package into a directory of its own, uses what is in it from there, and removes it again. Nothing
# outside of that directory is changed.
#
#   packaging/debian/check.sh PACKAGE.deb
#
# Needs a C compiler, pkg-config, dpkg-dev, groff, libfabric-dev, ibverbs-utils and ibverbs-providers.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
package=${1:?usage: packaging/debian/check.sh PACKAGE.deb}

fail() {
    printf 'packaging/debian/check.sh: %s\n' "$@" >&2
    exit 1
}
[ -f "$package" ] || fail "there is no package $package"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
# dpkg with a list of packages of its own; what the package depends on is installed outside of the directory. Only root may
# make files that are root's, so that others just unpack it.
dpkg_there() {
    dpkg --root="$root" --log="$work/log" --force-depends --force-bad-path "$@" >"$work/said" 2>&1 ||
        fail "dpkg $*: $(cat "$work/said")"
}
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
    : >"$root/var/lib/dpkg/status"
    : >"$root/var/lib/dpkg/available"
    dpkg_there --install "$package"
else
    dpkg-deb --extract "$package" "$root"
fi
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
lib=$root/usr/lib/$multiarch
tagmatch=$root/usr/bin/tagmatch

# The machine's own settings are none of this.
unset FI_PROVIDER FI_PROVIDER_PATH TAGMATCH_FI_LIB TAGMATCH_HCA_LIB PKG_CONFIG_PATH LD_LIBRARY_PATH

echo 'the command tells its version'
version=$(dpkg-deb --field "$package" Version)
said=$("$tagmatch" info)
[[ $said == *"tagmatch $version"* ]] || fail "tagmatch info does not name $version: $said"

echo 'licences of what is linked into it come with it'
notices=$(zcat "$root/usr/share/doc/tagmatch/THIRD-PARTY-NOTICES.gz")
for crate in $(cd "$top" && cargo tree --locked --edges no-dev,no-build,no-proc-macro --prefix none -p tagmatch -p tagmatch-fi -p tagmatch-hca -p tagmatch-c --format '{p}' |
    awk '$3 !~ /^\(/ { print $1 }' | sort -u); do
    grep -q "^$crate [0-9].*(..*)" <<<"$notices" || fail "the notices do not name $crate"
done
[[ $notices == *'Permission is hereby granted'* ]] || fail 'the notices have no text of a licence'

echo 'a program in C is compiled with what pkg-config says, and runs'
flags=$(PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs tagmatch)
# shellcheck disable=SC2086 # several words
cc -std=c11 -D_POSIX_C_SOURCE=200809L -o "$work/engine" "$top/capi/examples/engine.c" $flags
said=$(LD_LIBRARY_PATH=$lib "$work/engine")
[[ $said == *'all right'* ]] || fail "the example of the engine: $said"

echo 'libfabric finds the provider in the directory that it searches'
cat >"$work/providers.c" <<'PROGRAM'
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

/* What libfabric says of its parameter for directories, which names the one that it searches by itself. */
static int searched(void) {
    struct fi_param *params = NULL;
    int count = 0, result = fi_getparams(&params, &count);
    for (int i = 0; !result && i < count; i++)
        if (!strcmp(params[i].name, "FI_PROVIDER_PATH"))
            puts(params[i].help_string);
    if (!result)
        fi_freeparams(params);
    return result != 0;
}

int main(int argc, char **argv) {
    (void)argv;
    struct fi_info *info = NULL;
    int result = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
    if (argc > 1)
        return searched();
    if (result) {
        fprintf(stderr, "fi_getinfo: %s\n", fi_strerror(-result));
        return 1;
    }
    puts(info->fabric_attr->prov_name);
    fi_freeinfo(info);
    return 0;
}
PROGRAM
cc -o "$work/providers" "$work/providers.c" -lfabric
said=$("$work/providers" searched)
[[ $said == *"/usr/lib/$multiarch/libfabric"* ]] || fail "libfabric searches elsewhere: $said"
said=$(FI_PROVIDER=tagmatch FI_PROVIDER_PATH=$lib/libfabric "$work/providers") || fail 'libfabric finds no provider tagmatch'
[ "$said" = tagmatch ] || fail "libfabric finds the provider $said"
# Or this could not fail.
if FI_PROVIDER=tagmatch FI_PROVIDER_PATH=$work "$work/providers" >/dev/null 2>&1; then
    fail 'libfabric finds the provider where it is not'
fi

if command -v mpirun >/dev/null; then
    echo 'tagmatch mpirun finds the provider of the package'
    said=$("$tagmatch" env --mpirun mpirun)
    [[ $said == *"$root/usr/"*lib/tagmatch* ]] || fail "tagmatch env: $said"
fi

echo 'every command has a man page that groff has nothing to complain of'
pages=("$root"/usr/share/man/man1/*.1.gz)
[ "${#pages[@]}" -gt 10 ] || fail "${#pages[@]} man pages: too few to be all"
for page in "${pages[@]}"; do
    said=$(gzip -dc "$page" | groff -ww -b -z -Kutf8 -man -Tutf8 2>&1) || fail "$page: $said"
    [ -z "$said" ] || fail "$page: $said"
done

echo 'bash reads the completions'
bash -n "$root/usr/share/bash-completion/completions/tagmatch"

echo 'the simulated card of the package is found'
said=$("$tagmatch" hca -- ibv_devinfo) || fail "tagmatch hca: $said"
[[ $said == *hca_id:* ]] || fail "ibv_devinfo on the simulated card: $said"

if [ "$(id -u)" -eq 0 ]; then
    echo 'nothing is left when it is removed'
    dpkg_there --purge tagmatch
    left=$(find "$root/usr" ! -type d 2>/dev/null || true)
    [ -z "$left" ] || fail "left behind: $left"
fi
