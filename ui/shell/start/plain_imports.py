"""Imports as Python does them."""

import builtins


def remove_feature_import_hook() -> None:
    """Take PySide6's own `__import__` away again.

    It serves `from __feature__ import …`, which nothing here uses, and for that it reads the source of every module
    that is imported after it and keeps all of them (`feature_imported` of shibokensupport/feature.py): a third of the
    time of our imports, and 8 MB. PySide6 itself keeps in `builtins` what was there before. Where somebody else's
    came on top of it, a debugger's for example, all stays as it is.
    """
    plain = getattr(builtins, "__orig_import__", None)
    if plain is not None and getattr(builtins.__import__, "__name__", "") == "__feature_import__":
        builtins.__import__ = plain
