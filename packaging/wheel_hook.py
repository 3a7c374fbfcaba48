"""Hatchling's hook of the wheel: compiles the translations and adds them to the wheel."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TranslationsHook(BuildHookInterface):
    """Runs before the files of the wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile them, except for an editable install: `make` does it there."""
        if version == "editable":
            return
        subprocess.run([sys.executable, Path(self.root, "packaging", "compile_translations.py")], check=True)
        build_data["artifacts"].append("resources/translations/*.qm")
