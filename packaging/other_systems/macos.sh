#!/bin/sh
# Signs and notarises the application, and makes a disk image of it. Runs on macOS with Xcode's command line tools, after
# packaging/build.py. Usage: macos.sh VERSION
#
#   CODESIGN_IDENTITY   the name of a "Developer ID Application" certificate in the keychain
#   NOTARY_PROFILE      credentials that `xcrun notarytool store-credentials` keeps under this name
#
# Without an identity the image is made, but other machines refuse to open the application.
set -eu
cd "$(dirname "$0")/../.."

version=${1:?the version}
app="dist/Desktop Agent.app"
image="dist/desktop-agent-$version-macos-$(uname -m).dmg"
identity=${CODESIGN_IDENTITY:-}
profile=${NOTARY_PROFILE:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "$identity" ]; then
    # PyInstaller signed every part with it; the whole is sealed last.
    codesign --force --options runtime --timestamp --sign "$identity" \
        --entitlements packaging/other_systems/entitlements.plist "$app"
    codesign --verify --deep --strict --verbose=2 "$app"
fi
if [ -n "$identity" ] && [ -n "$profile" ]; then
    ditto -c -k --keepParent "$app" "$work/app.zip"
    xcrun notarytool submit "$work/app.zip" --keychain-profile "$profile" --wait
    xcrun stapler staple "$app"
    spctl --assess --type execute --verbose "$app"
else
    echo "Not notarised: CODESIGN_IDENTITY or NOTARY_PROFILE is not set." >&2
fi

mkdir "$work/image"
ditto "$app" "$work/image/Desktop Agent.app"
ln -s /Applications "$work/image/Applications"
rm -f "$image"
hdiutil create -volname "Desktop Agent" -srcfolder "$work/image" -fs HFS+ -format UDZO "$image"
if [ -n "$identity" ]; then
    codesign --timestamp --sign "$identity" "$image"
fi
if [ -n "$identity" ] && [ -n "$profile" ]; then
    xcrun notarytool submit "$image" --keychain-profile "$profile" --wait
    xcrun stapler staple "$image"
fi
echo "$image"
