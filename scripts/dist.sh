#!/usr/bin/env bash
# Makes the packages of `make dist` from a build folder, and sums of them. With the address that releases are
# downloaded from, writes a manifest for krew (kubectl's plugins), too.
# Usage: dist.sh BUILD [RELEASES]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 releases=${2:-}
out=$build/dist
rm -rf "$out"
for kind in DEB TGZ; do
  cpack --config "$build/CPackConfig.cmake" -G "$kind" > "$build/dist.log" 2>&1 || { cat "$build/dist.log" >&2; exit 1; }
done
rm -rf "$out/_CPack_Packages"
archive=$(basename "$out"/*.tar.gz)
(cd "$out" && sha256sum ./*.deb ./*.tar.gz > SHA256SUMS)
if [ -n "$releases" ]; then
  version=v$("$build/bin/fettle" --version | cut -d' ' -f2)
  sed -e "s|@VERSION@|$version|; s|@URI@|${releases%/}/$archive|" \
    -e "s|@SHA256@|$(awk -v file="./$archive" '$2 == file {print $1}' "$out/SHA256SUMS")|" \
    -e "s|@FOLDER@|${archive%.tar.gz}|" scripts/krew.yaml.in > "$out/fettle.krew.yaml"
fi
du -h "$out"/* | sed "s|$out/||"
