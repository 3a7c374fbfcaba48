"""Why something failed in a confined command, as far as its own words tell, said with what to do about it.

The words are those of the C library (strerror(3)) and what Node.js, libraries and programs of servers make of them.
"""

from dataclasses import dataclass

from desktop_agent.tools.confining.limits import counts_per_namespace

_BUBBLEWRAP, _LANDLOCK = frozenset({"bubblewrap"}), frozenset({"Landlock"})


@dataclass(frozen=True, slots=True)
class _RefusalHint:
    """What is said where one of the `signs` was read, all parts of it in one line; names of errors in capitals.

    `ways` are the confinements of which it holds, `networks` whether it holds of commands without and with hosts.
    """

    patterns: tuple[str | tuple[str, ...], ...]
    hint: str
    sandboxes: frozenset[str] = _BUBBLEWRAP | _LANDLOCK
    networks: frozenset[bool] = frozenset({False, True})


_NO_NETWORK_SIGNS = (
    "name or service not known",
    "failure in name resolution",
    "could not resolve",
    "couldn't resolve",
    "network is unreachable",
    "failed to lookup address",
    "dial tcp",
    "dial udp",
    "temporary failure resolving",
    "unknownhostexception",
    *("EAI_AGAIN", "ENOTFOUND", "ENETUNREACH"),
)
_REFUSAL_HINTS = (
    _RefusalHint(
        (
            "device or resource busy",
            (".git/hooks", "read-only file system"),
            (".git/config", "read-only file system"),
        ),
        "Hooks and settings of git repositories in the workspace are kept from commands, and files that other programs "
        "run by themselves where the line does not name them; so are the folders on the way to them from being moved: "
        "“Device or resource busy” comes from that. Ask the person to do it, or edit the file with a file tool.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("read-only file system", "EROFS"),
        "“Read-only file system” comes from the confinement: a command writes only in the workspace and in $TMPDIR. "
        "Let it write there, caches and settings of programs too. What programs run by themselves (.vscode/tasks.json, "
        ".envrc, workflows, hooks) it writes only where the line names that very file; or edit it with a file tool.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("permission denied", "EACCES"),
        "“Permission denied” may come from the confinement: a command writes only in the workspace and in $TMPDIR, and "
        "of home folders, /tmp and other disks it reads only development tools and their caches. Let the person put "
        "what it needs into the workspace.",
        _LANDLOCK,
    ),
    _RefusalHint(
        ("could not load cargo configuration",),
        "The person's settings of cargo hold more than what builds need, so they are closed here, and cargo stops at "
        "that. Let the person move tokens, aliases and the like elsewhere, or install bubblewrap.",
        _LANDLOCK,
    ),
    _RefusalHint(
        ("no new privileges", "effective uid is not 0", "\nsu: "),
        "Nobody becomes another user in the confinement: sudo and su do not work. Let the person do what needs them.",
    ),
    _RefusalHint(
        (
            ("/home/", "no such file or directory"),
            ("/root/", "no such file or directory"),
            ("/mnt/", "no such file or directory"),
            ("/srv/", "no such file or directory"),
        ),
        "Of home folders and other disks a command sees only the workspace, and development tools with their caches. "
        "Let the person put what it needs into the workspace.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        (("/tmp/", "no such file or directory"),),  # noqa: S108 - not used
        "What a command leaves in /tmp and in $TMPDIR is gone when it has ended, and what others left in /tmp is not "
        "there. Keep in the workspace what the next command needs.",
    ),
    _RefusalHint(
        ("address family not supported", "EAFNOSUPPORT"),
        "Sockets with a path (unix sockets) cannot be made in the confinement, nor pairs of datagrams, as services "
        "outside could be asked through them. Use 127.0.0.1, or pipes.",
        _BUBBLEWRAP,
    ),
    _RefusalHint(
        ("address family not supported", "EAFNOSUPPORT"),
        "Sockets with a path (unix sockets) cannot be made in the confinement, and without the network no others "
        "either, also for 127.0.0.1. Name 127.0.0.1 with hosts if it needs those.",
        _LANDLOCK,
    ),
    _RefusalHint(
        (
            *_NO_NETWORK_SIGNS,
            "no matching distribution found",
        ),
        "This command had no network, as it named no host. Name with hosts each one that it must reach.",
        networks=frozenset({False}),
    ),
    _RefusalHint(
        _NO_NETWORK_SIGNS,
        "The hosts that this command named are reached through the proxy in http_proxy and https_proxy alone; other "
        "connections lead nowhere, nor can names be looked up. Use addresses with https, and programs that go by these "
        "variables; ssh and databases do not.",
        _BUBBLEWRAP,
        networks=frozenset({True}),
    ),
)


_READ_ONLY_HINT = (
    "The command was held to reading, as it looked like one that only looks and nobody was asked about it. What it "
    "wants to write, write with a file tool, or with a command that says so: the person is asked then."
)


_LIMIT_SIGNS = (
    "memory exhausted",
    "cannot allocate memory",
    "out of memory",
    "not enough memory",
    "memoryerror",
    "file too large",
    "resource temporarily unavailable",
)
_LIMITS_HINT = (
    "The command ran without a question, so none of its processes gets more than 2 GB of memory, and none of its files "
    "more than 1 GB{processes}. Let it do less at once; one that writes a file is asked about, and has no such limits."
)
_PROCESS_LIMIT_HINT = ", nor has it more than 1,024 processes"


def explain_refusals(output: str, sandbox: str, workspace: str, *, network: bool, is_read_only: bool = False) -> str:
    """Sentences for the model, empty where nothing in the output tells. `sandbox` is the name of the confinement."""
    # It may lie among temporary files.
    text = "\n" + output.replace(workspace, "")
    lowered = text.lower()
    if is_read_only and sandbox and any(sign in lowered for sign in _LIMIT_SIGNS):
        return _LIMITS_HINT.format(
            processes=_PROCESS_LIMIT_HINT if sandbox in _BUBBLEWRAP and counts_per_namespace() else ""
        )
    if is_read_only and sandbox and ("read-only file system" in lowered or "EROFS" in text):
        return _READ_ONLY_HINT
    held = is_read_only and sandbox and "permission denied" in lowered
    said = (
        each.hint
        for each in _REFUSAL_HINTS
        if sandbox in each.sandboxes
        and network in each.networks
        and any(
            _appears_in(sign, text if isinstance(sign, str) and sign.isupper() else lowered) for sign in each.patterns
        )
    )
    return " ".join((*said, *([_READ_ONLY_HINT] if held else ())))


def _appears_in(sign: str | tuple[str, ...], text: str) -> bool:
    if isinstance(sign, str):
        return sign in text
    # The lines only where it can be: most outputs have none.
    whole = all(part in text for part in sign)
    return whole and any(all(part in line for part in sign) for line in text.splitlines())
