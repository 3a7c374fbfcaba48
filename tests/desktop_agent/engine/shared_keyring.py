"""A keyring that several processes share: a file. Run as a program, it is one of them.

The program is given the file, a folder, and the address of a server to which the person is signed in. It reads a line,
calls the tool of the server, and says what came; so for each line.
"""

import asyncio
import json
import sys
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.storage.files import write_atomically
from desktop_agent.tools.tool import RunningCall
from tests.fakes.mcp_servers import Memory, Stand, at, stand


class InFile(Memory):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def set(self, name: str, value: SecretStr) -> None:
        write_atomically(self._path, json.dumps({**self.kept, name: value.get_secret_value()}).encode())

    async def get(self, name: str) -> SecretStr | None:
        value = self.kept.get(name)
        return SecretStr(value) if value is not None else None

    async def delete(self, name: str) -> None:
        remaining = {key: value for key, value in self.kept.items() if key != name}
        write_atomically(self._path, json.dumps(remaining).encode())

    @property
    def kept(self) -> dict[str, str]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}


def share(setup: Stand, path: Path) -> Stand:
    """From now on its secrets lie there."""
    setup.secrets = InFile(path)
    setup.servers._secrets.store = setup.servers._oauth._secrets = setup.servers._transports._secrets = setup.secrets
    return setup


async def call_look(setup: Stand) -> str:
    tool = next(tool for tool in setup.servers.tools(None) if tool.name == "web__look")
    try:
        return str(await tool.run({}, RunningCall("call", lambda _: None)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def work(path: str, folder: str, url: str) -> None:
    async with stand(Path(folder), at(url, sign_in=True)) as setup:
        share(setup, Path(path))
        print((await setup.servers.test("web", None)).state, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(await call_look(setup), flush=True)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
