#!/usr/bin/env bash
# Makes a Debian package of a built binary, with its man pages, completions and the units of a nightly sweep:
#   packaging/deb.sh [BINARY] [FOLDER]
# Needs dpkg-deb. Without a binary the one in target/release is taken.
set -euo pipefail
top="$(cd "$(dirname "$0")/.." && pwd)"
binary="${1:-${CARGO_TARGET_DIR:-$top/target}/release/mt-detector}"
out="${2:-.}"
command -v dpkg-deb >/dev/null || { echo "no package here, for want of dpkg-deb" >&2; exit 3; }
[ -x "$binary" ] || { echo "$binary is no program; build it first" >&2; exit 1; }

version="$("$binary" --version | cut -d' ' -f2)"
arch="$(dpkg --print-architecture)"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
pages="$root/pages"
"$binary" man --out "$pages"

install -Dm755 "$binary" "$root/usr/bin/mt-detector"
for page in "$pages"/*.1; do
    install -d "$root/usr/share/man/man1"
    gzip -9nc "$page" >"$root/usr/share/man/man1/$(basename "$page").gz"
done
install -Dm644 "$pages/mt-detector.bash" "$root/usr/share/bash-completion/completions/mt-detector"
install -Dm644 "$pages/_mt-detector" "$root/usr/share/zsh/vendor-completions/_mt-detector"
install -Dm644 "$pages/mt-detector.fish" "$root/usr/share/fish/vendor_completions.d/mt-detector.fish"
rm -rf "$pages"
install -Dm644 "$top/packaging/systemd/mt-detector-sweep.service" "$root/usr/lib/systemd/system/mt-detector-sweep.service"
install -Dm644 "$top/packaging/systemd/mt-detector-sweep.timer" "$root/usr/lib/systemd/system/mt-detector-sweep.timer"
install -Dm644 "$top/packaging/systemd/mt-detector.default" "$root/etc/default/mt-detector"
install -Dm644 "$top/LICENSE" "$root/usr/share/doc/mt-detector/copyright"
install -Dm644 "$top/src/page/assets/echarts.LICENSE" "$root/usr/share/doc/mt-detector/echarts.LICENSE"
install -Dm644 "$top/src/page/assets/echarts.NOTICE" "$root/usr/share/doc/mt-detector/echarts.NOTICE"

mkdir -p "$root/DEBIAN"
echo /etc/default/mt-detector >"$root/DEBIAN/conffiles"
depends=""
if ldd "$binary" 2>/dev/null | grep -q 'libc.so'; then
    depends="Depends: libc6, libgcc-s1"$'\n'
fi
cat >"$root/DEBIAN/control" <<CONTROL
Package: mt-detector
Version: $version
Architecture: $arch
Maintainer: mt-detector authors <noreply@example.com>
Section: science
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
${depends}Description: names the slow ranks of a Megatron-LM training job
 Reads the per-rank timers of a job from ClickHouse or files and says which
 ranks were slow, on which nodes, since when, why, and what it cost.
CONTROL
package="$out/mt-detector_${version}_$arch.deb"
dpkg-deb --root-owner-group -Zgzip --build "$root" "$package" >/dev/null
echo "$package"
