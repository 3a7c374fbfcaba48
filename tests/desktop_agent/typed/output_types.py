"""Answers of a type have that type."""

from dataclasses import dataclass

from desktop_agent import Client, run


@dataclass
class Lake:
    name: str


@dataclass
class Town:
    name: str


async def main(client: Client) -> str:
    lake: Lake = (await client.complete("", output_type=Lake)).output
    lakes: list[Lake] = (await client.complete("", output_type=list[Lake])).output
    either: Lake | Town = (await client.complete("", output_type=Lake | Town)).output
    return lake.name + lakes[0].name + either.name


def once() -> list[str]:
    return run("", output_type=list[str]).output
