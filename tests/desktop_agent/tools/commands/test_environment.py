from pathlib import Path

from desktop_agent.tools.commands.environment import environment_of_command

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
    made = environment_of_command(OWN, Path("/tmp/own"), network=False)
    assert {name for name in made if name in OWN} == {"PATH", "HOME", "LC_ALL"}
    assert made["TMPDIR"] == "/tmp/own"
    assert made["XDG_CACHE_HOME"] == "/tmp/own/cache"
    assert made["TERM"] == "dumb"
    assert "secret" not in str(made)


def test_a_proxy_goes_along_with_the_network_but_no_password() -> None:
    made = environment_of_command(OWN, Path("/tmp/own"), network=True)
    assert made["https_proxy"] == "http://proxy:3128"
    assert "HTTP_PROXY" not in made
    assert "secret" not in str(made)


def test_there_is_always_a_path() -> None:
    assert environment_of_command({}, Path("/x"), network=False)["PATH"]
