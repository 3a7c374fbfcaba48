from pathlib import Path

from desktop_agent.sandbox.environment import command_environment, proxy_environment

OWN = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "de_DE.UTF-8",
    "OPENAI_API_KEY": "secret",
    "DESKTOP_AGENT_KEY": "secret",
    "AWS_SESSION_TOKEN": "secret",
    "SSH_AUTH_SOCK": "/run/x",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus",
    "DISPLAY": ":0",
    "LD_PRELOAD": "/x.so",
    "LD_LIBRARY_PATH": "/frozen",
    "BASH_ENV": "/x",
    "BASH_FUNC_ls%%": "() { x; }",
    "PYTHONPATH": "/x",
    "https_proxy": "http://proxy:3128",
    "HTTP_PROXY": "http://me:secret@proxy:3128",
}


def test_only_what_is_known_goes_along() -> None:
    made = command_environment(OWN, Path("/tmp/own"), network=False)
    assert {name for name in made if name in OWN} == {"PATH", "HOME", "LC_ALL"}
    assert made["TMPDIR"] == "/tmp/own"
    assert made["XDG_CACHE_HOME"] == "/tmp/own/cache"
    assert made["TERM"] == "dumb"
    assert "secret" not in str(made)


def test_a_proxy_goes_along_with_the_network_but_no_password() -> None:
    made = command_environment(OWN, Path("/tmp/own"), network=True)
    assert made["https_proxy"] == "http://proxy:3128"
    assert "HTTP_PROXY" not in made
    assert "secret" not in str(made)


def test_a_command_that_is_alone_in_its_network_is_told_of_the_one_proxy() -> None:
    made = command_environment(OWN, Path("/tmp/own"), network=True) | proxy_environment(["a-b.test"])
    proxies = {name: value for name, value in made.items() if "proxy" in name.lower()}
    direct = {"no_proxy", "NO_PROXY"}
    assert {value for name, value in proxies.items() if name not in direct | {"NODE_USE_ENV_PROXY"}} == {
        "http://127.0.0.1:3128"
    }
    assert {made[name] for name in direct} == {"localhost,127.0.0.1,::1"}
    assert proxy_environment(["localhost", "::1"])["no_proxy"] == "127.0.0.1"


def test_without_the_network_nobody_asks_again_and_again() -> None:
    retries = {"PIP_RETRIES", "UV_HTTP_RETRIES", "npm_config_fetch_retries", "YARN_HTTP_RETRY", "CARGO_NET_RETRY"}
    made = command_environment(OWN, Path("/tmp/own"), network=False)
    assert {made[name] for name in retries} == {"0"}
    assert not retries & command_environment(OWN, Path("/tmp/own"), network=True).keys()


def test_caches_are_written_in_its_own_folder_and_some_read_where_they_are(tmp_path: Path) -> None:
    made = command_environment({"HOME": str(tmp_path)}, Path("/tmp/own"), network=False)
    assert made["npm_config_cache"] == "/tmp/own/cache/npm"
    assert "PRE_COMMIT_HOME" not in made
    assert not any(value.startswith("/.cache") for value in command_environment({}, Path("/x"), network=False).values())
    (tmp_path / ".cache/pre-commit").mkdir(parents=True)
    (tmp_path / "moved/ms-playwright").mkdir(parents=True)
    made = command_environment({"HOME": str(tmp_path)}, Path("/tmp/own"), network=False)
    assert made["PRE_COMMIT_HOME"] == str(tmp_path / ".cache/pre-commit")
    own = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "moved")}
    made = command_environment(own, Path("/tmp/own"), network=False)
    assert made["PLAYWRIGHT_BROWSERS_PATH"] == str(tmp_path / "moved/ms-playwright")
    assert "PRE_COMMIT_HOME" not in made


def test_there_is_always_a_path() -> None:
    assert command_environment({}, Path("/x"), network=False)["PATH"]
