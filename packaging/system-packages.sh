#!/bin/sh
# Installs what Qt and the tests need from the system, on Debian and Ubuntu; elsewhere it says what is needed.
# Usage: system-packages.sh run|test|package. Does nothing when everything is there.
set -eu

# Qt's libraries: "offscreen" needs the first line, a window under X11 the others.
run="libglib2.0-0 libgl1 libegl1 libxkbcommon0 libdbus-1-3 libfontconfig1 libfreetype6
     libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0
     libxcb-xkb1 libxkbcommon-x11-0 fonts-dejavu-core"
# A private screen with a window manager, keys and clipboard; the bus of screen readers; a keyring; what confines
# commands, and curl, which tries to get out; file systems made by tests; what packs an archive; many writing systems
# and time zones.
test="$run xvfb openbox xdotool xclip x11-utils dbus at-spi2-core python3-pyatspi gnome-keyring dunst bubblewrap curl fuse3
      xz-utils fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji tzdata"
# What PyInstaller reads libraries with, what packs the result and shows it, what makes roots of other releases to try it
# in, and what checks certificates, the desktop entry, the manual page and the recipes.
package="$run binutils rpm xz-utils mmdebstrap xvfb openbox x11-utils openssl desktop-file-utils appstream mandoc nsis
         shellcheck yamllint"

case "${1:-}" in
    run) wanted=$run ;;
    test) wanted=$test ;;
    package) wanted=$package ;;
    *) echo "usage: $0 run|test|package" >&2; exit 2 ;;
esac

if [ "$(uname -s)" != Linux ]; then
    exit 0 # the wheels bring what they need
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian or Ubuntu. Install the equivalents of these packages if something is missing:" $wanted
    exit 0
fi

# A package may be there under another name that provides this one (libglib2.0-0t64).
there=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}, ${Provides}\n' | sed -n 's/^ii *//p' | tr ',' '\n' |
    sed 's/ *(.*//; s/^ *//' | sort -u)
missing=
for name in $wanted; do
    printf '%s\n' "$there" | grep -qxF "$name" || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "The system lacks some packages. Install them with:" >&2
    echo "    sudo apt-get install --no-install-recommends$missing" >&2
    # The window may run without some of these; the tests may not.
    [ "$1" = run ]
    exit
fi

echo "Installing system packages:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing </dev/null >"$log" 2>&1
}
# Lists of packages may be absent or stale: a second try with fresh ones.
if ! install && ! { $as_root apt-get update </dev/null >"$log" 2>&1 && install; }; then
    cat "$log" >&2
    echo "Installing the packages failed; the reason is above." >&2
    exit 1
fi
