#!/usr/bin/env bash
# Builds the Debian package `tagmatch`: the command with man pages and completions, the libfabric provider where libfabric
# looks for it, the simulated card, and the C library with header and file for pkg-config.
#
#   packaging/debian/build.sh [FOLDER]      build all with cargo (--release), and write the package into FOLDER (target/debian)
#
# BUILT=DIRECTORY takes what cargo has built there already. Needs dpkg-dev, make, a C compiler and python3. The last line
# names the package.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$top/target/debian}
built=${BUILT:-}
mkdir -p "$out"
out=$(cd "$out" && pwd)

fail() {
    printf 'packaging/debian/build.sh: %s\n' "$@" >&2
    exit 1
}

for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture make cc strip python3; do
    command -v "$tool" >/dev/null || fail "there is no $tool: apt-get install dpkg-dev make gcc libc6-dev python3"
done

if [ -z "$built" ]; then
    built=${CARGO_TARGET_DIR:-$top/target}/release
    (cd "$top" && cargo build --release --locked -p tagmatch -p tagmatch-fi -p tagmatch-hca -p tagmatch-c)
fi
built=$(cd "$built" && pwd)
for file in tagmatch libtagmatch_fi.so libtagmatch_hca.so libtagmatch_c.a; do
    [ -e "$built/$file" ] || fail "there is no $file in $built: build tagmatch, tagmatch-fi, tagmatch-hca and tagmatch-c there"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$top/Cargo.toml" | head -n 1)
description=$(sed -n '/^name = "tagmatch"$/,/^$/ s/^description = "\(.*\)"$/\1/p' "$top/Cargo.toml")
[ -n "$version" ] && [ -n "$description" ] || fail 'Cargo.toml names no version or no description'
architecture=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

# The command, its man pages and its completions.
install -D -m 755 "$built/tagmatch" "$stage/usr/bin/tagmatch"
"$built/tagmatch" man "$stage/usr/share/man/man1" >/dev/null
completions() {
    mkdir -p "$(dirname "$stage/$2")"
    "$built/tagmatch" completions "$1" >"$stage/$2"
}
completions bash usr/share/bash-completion/completions/tagmatch
completions zsh usr/share/zsh/vendor-completions/_tagmatch
completions fish usr/share/fish/vendor_completions.d/tagmatch.fish

# The provider. libfabric searches the second place unless FI_PROVIDER_PATH says otherwise, and `tagmatch mpirun` the first;
# the simulated card is looked for there too.
install -D -m 644 "$built/libtagmatch_fi.so" "$stage/usr/lib/tagmatch/libtagmatch-fi.so"
install -D -m 644 "$built/libtagmatch_hca.so" "$stage/usr/lib/tagmatch/libtagmatch_hca.so"
mkdir -p "$stage/usr/lib/$multiarch/libfabric"
ln -s ../../tagmatch/libtagmatch-fi.so "$stage/usr/lib/$multiarch/libfabric/libtagmatch-fi.so"

# The C library, as its Makefile installs it.
# (BUILT is a variable of the Makefile too.)
env -u BUILT make -s -C "$top/capi" install ARCHIVE="$built/libtagmatch_c.a" BUILD="$work/capi" \
    PREFIX=/usr LIBDIR="/usr/lib/$multiarch" INCLUDEDIR=/usr/include DESTDIR="$stage"

strip --strip-unneeded "$stage/usr/bin/tagmatch" "$stage"/usr/lib/tagmatch/*.so "$stage/usr/lib/$multiarch/libtagmatch.so.$version"
strip --strip-debug "$stage/usr/lib/$multiarch/libtagmatch.a"

# Documentation.
docs=$stage/usr/share/doc/tagmatch
mkdir -p "$docs/examples"
install -m 644 "$top/README.md" "$top"/docs/*.md "$docs"
install -m 644 "$top"/capi/examples/*.c "$docs/examples"
install -m 644 "$top/CHANGELOG.md" "$docs/changelog"
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n'
    printf 'Upstream-Name: tagmatch\n\nFiles: *\n'
    printf 'Copyright: %s\n' "$(sed -n 's/^Copyright (c) //p' "$top/LICENSE-MIT")"
    printf 'License: Expat or Apache-2.0\n\nLicense: Expat\n'
    sed -n '/^Permission/,$ { s/^$/./; s/^/ /; p }' "$top/LICENSE-MIT"
    printf '\nLicense: Apache-2.0\n On Debian systems its text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$docs/copyright"
(cd "$top" && packaging/notices.py tagmatch tagmatch-fi tagmatch-hca tagmatch-c) >"$docs/THIRD-PARTY-NOTICES"
find "$stage/usr/share/man" "$docs/changelog" "$docs/THIRD-PARTY-NOTICES" -type f -exec gzip -9n {} +

# What the programs and libraries are linked with. Those that are opened at run time are only recommended.
mkdir -p "$work/debian" "$stage/DEBIAN"
printf 'Source: tagmatch\n\nPackage: tagmatch\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info -e"$stage/usr/bin/tagmatch" \
    -e"$stage/usr/lib/tagmatch/libtagmatch-fi.so" -e"$stage/usr/lib/tagmatch/libtagmatch_hca.so" \
    -e"$stage/usr/lib/$multiarch/libtagmatch.so.$version" 2>"$work/complaints" | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || fail "dpkg-shlibdeps found nothing: $(cat "$work/complaints")"
cat >"$stage/DEBIAN/control" <<CONTROL
Package: tagmatch
Version: $version
Architecture: $architecture
Maintainer: the tagmatch developers <tagmatch@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$stage" | cut -f1)
Depends: $depends
Recommends: libfabric1, libibverbs1, ibverbs-providers
Suggests: openmpi-bin, pkg-config
Section: net
Priority: optional
Description: tag matching for message-passing runtimes
 $description.
 .
 This package has the command, the libfabric provider, the simulated ConnectX
 that "tagmatch hca" runs programs on, and the C library with its header.
CONTROL
# Other packages that are linked with the library, and the linker's cache.
printf 'libtagmatch 0 tagmatch (>= %s)\n' "$version" >"$stage/DEBIAN/shlibs"
printf 'activate-noawait ldconfig\n' >"$stage/DEBIAN/triggers"
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)

chmod -R u=rwX,go=rX "$stage"
package=$out/tagmatch_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
printf '%s\n' "$package"
