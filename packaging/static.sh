#!/usr/bin/env bash
# Builds a binary that needs no library of the machine it runs on: musl, in target/<arch>-unknown-linux-musl/release.
# Needs the target (rustup target add) and a C compiler for musl (Debian: musl-tools), for zstd, lzma and ring.
# With --check it only says whether it could: 0 yes, 3 no.
set -euo pipefail
cd "$(dirname "$0")/.."
target="$(uname -m)-unknown-linux-musl"

missing=()
command -v cargo >/dev/null || missing+=("cargo")
command -v musl-gcc >/dev/null || missing+=("musl-gcc (apt-get install musl-tools)")
if command -v rustup >/dev/null; then
    rustup target list --installed | grep -qx "$target" || missing+=("the target (rustup target add $target)")
else
    [ -d "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$target" ] || missing+=("the standard library of $target")
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "no static build here, for want of: $(IFS=';'; echo "${missing[*]}")" >&2
    exit 3
fi
[ "${1:-}" = --check ] && exit 0

export CC_x86_64_unknown_linux_musl=musl-gcc CC_aarch64_unknown_linux_musl=musl-gcc
cargo build --release --locked --target "$target"
binary="${CARGO_TARGET_DIR:-target}/$target/release/mt-detector"
if ldd "$binary" 2>/dev/null | grep -q '=>'; then
    echo "$binary needs libraries of this machine" >&2
    exit 1
fi
"$binary" --version
echo "$binary"
