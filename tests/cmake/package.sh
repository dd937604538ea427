#!/usr/bin/env bash
# The .deb on a bare Debian 12: builds it (preset release), makes a minimal Debian 12 with debootstrap from this machine's own apt
# mirror, installs the .deb there with apt, and builds and runs in it the README's project, pasted into an empty folder.
# Usage: bash tests/cmake/package.sh [BUILD_FOLDER]       Needs root, debootstrap, dpkg-dev, a mirror; minutes and 2 GB below TMPDIR.
# MODELC_DEBS=FOLDER keeps debootstrap's downloads in an existing folder for the next time; MODELC_BARE=FOLDER copies a minimal Debian 12
# that stands there instead of making one.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-release}

say() { echo; echo "== $*"; }
die() { echo "FAILED  $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "this needs root: it makes a Debian in a folder and runs in it"
for program in debootstrap dpkg-shlibdeps unshare; do
  command -v "$program" > /dev/null || die "$program is missing (apt-get install debootstrap dpkg-dev util-linux)"
done
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

say "the package"
cmake --preset release -B "$build" > "$work/log" 2>&1 || { cat "$work/log" >&2; die "cmake --preset release"; }
cmake --build "$build" > "$work/log" 2>&1 || { tail -50 "$work/log" >&2; die "the build"; }
(cd "$build" && cpack -G DEB -B "$work/package") > "$work/log" 2>&1 || { cat "$work/log" >&2; die "cpack"; }
deb=$(find "$work/package" -maxdepth 1 -name '*.deb')
[ -f "$deb" ] || die "cpack made no .deb, or several: $deb"
dpkg-deb --info "$deb" | sed -n 's/^ \(Package\|Version\|Architecture\|Installed-Size\|Depends\|Recommends\|Suggests\):/\1:/p'

say "a minimal Debian 12"
# The mirror that apt has for bookworm here, of either kind of file.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null || true; } |
  sed -n 's/^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*\)  *bookworm  *main.*/\2/p' | head -n 1)
[ -n "$mirror" ] || mirror=$(awk '
  function stanza() { if (uri != "" && suites ~ /(^| )bookworm( |$)/ && !shown) { print uri; shown = 1 }; uri = suites = "" }
  FNR == 1 || /^$/ { stanza() }
  /^URIs:/ { uri = $2 }
  /^Suites:/ { $1 = ""; suites = $0 " " }
  END { stanza() }' /etc/apt/sources.list.d/*.sources 2> /dev/null || true)
[ -n "$mirror" ] || die "apt has no mirror of bookworm in /etc/apt/sources.list*"
root=$work/debian
if [ -n "${MODELC_BARE:-}" ]; then
  cp -a "$MODELC_BARE" "$root"
else
  debootstrap --variant=minbase ${MODELC_DEBS:+--cache-dir="$MODELC_DEBS"} bookworm "$root" "$mirror" > "$work/log" 2>&1 ||
    { tail -20 "$work/log" >&2; die "debootstrap"; }
fi
# How apt reaches it, as here.
{ grep -ls '^Acquire' /etc/apt/apt.conf.d/* /etc/apt/apt.conf || true; } | xargs -r cp -t "$root/etc/apt/apt.conf.d/"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2> /dev/null || true
# In a namespace of its own: what is mounted there goes with it.
inside() {
  unshare --mount --pid --fork --root="$root" --mount-proc \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}
bare=$(inside dpkg-query -W | wc -l)
echo "$bare packages; a compiler: $(inside sh -c 'command -v c++ || echo none')"

say "apt-get install ./modelc.deb"
cp "$deb" "$root/srv/modelc.deb"
inside apt-get update -q > "$work/log" 2>&1 || { tail -20 "$work/log" >&2; die "apt-get update"; }
inside apt-get install -q -y /srv/modelc.deb > "$work/log" 2>&1 || { tail -40 "$work/log" >&2; die "apt-get install"; }
echo "$(($(inside dpkg-query -W | wc -l) - bare)) packages more"
inside modelc --version || die "modelc --version"

say "the README's project in an empty folder"
project=$root/srv/project
mkdir "$project"
# The block of one kind of text in the section.
block() { awk -v kind="$1" '/^## Use in CMake/ { here = 1; next } here && /^## / { exit } copy && /^```$/ { exit } copy { print } here && $0 == "```" kind { copy = 1 }' README.md; }
block cmake > "$project/CMakeLists.txt"
block sh > "$root/srv/commands"
grep -q modelc_add_executable "$project/CMakeLists.txt" || die "README.md: no CMake project under \"Use in CMake\""
grep -q "cmake --build" "$root/srv/commands" || die "README.md: no commands under \"Use in CMake\""
prompt="It is a truth universally"
here=$("$build/codegen/driver/modelc" run examples/llama/llama.model --checkpoint examples/tiny --prompt "$prompt" -n 24 2> /dev/null)
inside sh -c 'cd /srv/project && sh -e /srv/commands' > "$work/log" 2> "$work/errors" || { tail -50 "$work/log" "$work/errors" >&2; die "the project"; }
grep -vE '^\[|^--' "$work/log" | sed 's/^/  /'
# What its two programs wrote; the second draws its tokens.
[ -n "$here" ] || die "modelc run wrote nothing here"
case "$(cat "$work/log")" in *"$here"$'\n'"$prompt"?*) ;; *) die "its programs did not write \"$here\" and a text of their own" ;; esac

say "modelc run, with the compiler that the package pulled"
ran=$(inside sh -c "cd /srv/project && modelc run llama.model --checkpoint /usr/share/modelc/examples/tiny --prompt '$prompt' -n 24" 2> "$work/log") || { cat "$work/log" >&2; die "modelc run"; }
[ "$ran" = "$here" ] || die "modelc run wrote \"$ran\""

say "the C API: the example that comes with the package"
inside sh -ec 'cmake -S /usr/share/modelc/examples/embed -B /srv/embed && cmake --build /srv/embed' > "$work/log" 2>&1 || { tail -50 "$work/log" >&2; die "examples/embed"; }
ran=$(inside /srv/embed/generate /usr/share/modelc/examples/tiny "$prompt" 24 2> "$work/log") || { cat "$work/log" >&2; die "the program in C"; }
[ "$ran" = "$here" ] || die "the program in C wrote \"$ran\""

say "apt-get remove"
inside apt-get remove -q -y modelc > "$work/log" 2>&1 || { cat "$work/log" >&2; die "apt-get remove"; }
left=$(find "$root/usr" "$root/etc" -path '*modelc*' ! -path '*/ccache/*' | head -5)
[ -z "$left" ] || die "left behind: $left"
echo
echo "the package: all passed"
