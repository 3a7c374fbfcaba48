"""The version of this program."""


def program_version() -> str:
    """Return the installed version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("desktop-agent")
    except PackageNotFoundError:
        return "0 (not installed)"
