"""The environment that a command gets: a few variables by name, and nothing else of this program's own."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

_PASSED_VARIABLES = """
    PATH HOME USER LOGNAME LANG LANGUAGE TZ JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME VIRTUAL_ENV
    CONDA_PREFIX NVM_DIR PYENV_ROOT RBENV_ROOT SDKMAN_DIR ANDROID_HOME DOTNET_ROOT CC CXX PKG_CONFIG_PATH
    XDG_CONFIG_HOME XDG_DATA_DIRS SSL_CERT_FILE SSL_CERT_DIR
"""
_PROXY_VARIABLES = "http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY all_proxy ALL_PROXY"
_LOCALE = re.compile(r"LC_[A-Z]+")
# What of a cache is only read is read where the person has it. Programs that can do without writing there.
_READ_CACHES = {
    "PRE_COMMIT_HOME": "pre-commit",
    "PLAYWRIGHT_BROWSERS_PATH": "ms-playwright",
    "PUPPETEER_CACHE_DIR": "puppeteer",
    "HF_HOME": "huggingface",
}
# Where there is none, asking again and again takes minutes.
_WITHOUT_NETWORK = {
    "PIP_RETRIES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_HTTP_RETRIES": "0",
    "npm_config_fetch_retries": "0",
    "npm_config_update_notifier": "false",
    "YARN_HTTP_RETRY": "0",
    "CARGO_NET_RETRY": "0",
    "BUNDLE_RETRY": "0",
}
PROXY_PORT = 3128
"""Where a command that is alone in its network has its proxy, on 127.0.0.1."""
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
# Nobody is there to answer, to turn pages, or to see colours.
_FIXED_VARIABLES = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    # A folder of ordinary files can look like a repository, with settings that start programs (git-config(1)).
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "DEBIAN_FRONTEND": "noninteractive",
    "NO_COLOR": "1",
}


def command_environment(
    own: Mapping[str, str], temporary: Path, *, network: bool, is_read_only: bool = False
) -> dict[str, str]:
    """The variables of a command, out of this program's `own`; it puts temporary files and caches in `temporary`.

    Where it `is_read_only`, also the caches that programs keep in the workspace otherwise.
    """
    passed = {
        name: value for name, value in own.items() if name in _PASSED_VARIABLES.split() or _LOCALE.fullmatch(name)
    }
    if network:
        # An address with a name and a password in it is a secret.
        passed |= {name: value for name, value in own.items() if name in _PROXY_VARIABLES.split() and "@" not in value}
    else:
        passed |= _WITHOUT_NETWORK
    passed.setdefault("PATH", os.defpath)
    found = passed | _FIXED_VARIABLES | _shared_caches(own) | _temporary_folders(temporary)
    return found | _read_only_caches(temporary) if is_read_only else found


def proxy_environment(hosts: Collection[str]) -> dict[str, str]:
    """The variables by which programs find the proxy to these hosts; its own servers a command reaches without."""
    proxy, direct = f"http://127.0.0.1:{PROXY_PORT}", ",".join(each for each in _OWN_HOSTS if each not in hosts)
    names = {name: direct if "no" in name.lower() else proxy for name in _PROXY_VARIABLES.split()}
    # From version 22.21 on Node.js goes by the others if this is set.
    return {**names, "NODE_USE_ENV_PROXY": "1"}


def _temporary_folders(temporary: Path) -> dict[str, str]:
    caches = temporary / "cache"
    return {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(caches), "npm_config_cache": str(caches / "npm")}


def _read_only_caches(temporary: Path) -> dict[str, str]:
    caches = temporary / "cache"
    return {
        "RUFF_CACHE_DIR": str(caches / "ruff"),
        "MYPY_CACHE_DIR": str(caches / "mypy"),
        "GIT_OPTIONAL_LOCKS": "0",
        # `python -c` imports no module of the workspace, whatever its name.
        "PYTHONSAFEPATH": "1",
    }


def _shared_caches(own: Mapping[str, str]) -> dict[str, str]:
    home = own.get("XDG_CACHE_HOME") or (f"{own['HOME']}/.cache" if own.get("HOME") else "")
    found = {name: Path(home, folder) for name, folder in _READ_CACHES.items() if home}
    return {name: str(place) for name, place in found.items() if place.is_dir()}
