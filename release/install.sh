#!/bin/sh
# Installs dyno from the tarball of a release: install.sh [TARBALL or URL], below PREFIX (default /usr/local, else ~/.local).
# Without an argument it downloads the latest release from DYNO_RELEASES. It checks the SHA-256 where SHA256SUMS is next to the tarball.
set -eu
fail() { echo "install.sh: $*" >&2; exit 1; }
[ "$(uname -s)" = Linux ] || fail "releases are for Linux; elsewhere, build it: cargo build --release"
machine=$(uname -m)
case $machine in x86_64 | aarch64) ;; *) fail "there is no release for $machine; build it: cargo build --release" ;; esac
name=dyno-$machine-linux.tar.gz
releases=${DYNO_RELEASES:-https://github.com/OWNER/dyno/releases/latest/download}
from=${1:-$releases/$name}
prefix=${PREFIX:-}
if [ -z "$prefix" ]; then
  prefix=/usr/local
  [ -w "$prefix/bin" ] || prefix=$HOME/.local
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fetch() { # source file
  case $1 in
    *://*) curl -fsSL "$1" -o "$2" ;;
    *) [ -f "$1" ] && cp "$1" "$2" ;;
  esac
}
fetch "$from" "$folder/$name" || fail "$from can't be had"
if fetch "${from%/*}/SHA256SUMS" "$folder/SHA256SUMS" 2>/dev/null; then
  (cd "$folder" && grep " $name\$" SHA256SUMS | sha256sum -c --status -) || fail "$from is not what SHA256SUMS says: download both again"
else
  echo "install.sh: no SHA256SUMS next to $from: its bytes are not checked" >&2
fi
mkdir "$folder/dyno"
tar -xzf "$folder/$name" -C "$folder/dyno" --strip-components=1
mkdir -p "$prefix/bin" "$prefix/share"
cp "$folder/dyno/dyno" "$prefix/bin/dyno"
cp -R "$folder/dyno/share/." "$prefix/share/"
echo "dyno is installed: $prefix/bin/dyno"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "Add $prefix/bin to your PATH." ;; esac
