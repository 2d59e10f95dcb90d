"""What the processes of a mode listen on, as the kernel says, and what a stranger gets from a listener of Spark.

The standard library alone: a job loads this module too, and finds only what comes with its run.
"""

import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_LISTENING, _LISTENS = "0A", 0x10000
_SECONDS = 10
_RPC_REQUEST, _OPEN_BLOCKS = 3, 0
CHALLENGED = b"Unknown challenge message"
"""In the answer of a listener of Spark that wants to know first who calls."""


@dataclass(frozen=True, order=True)
class Door:
    """A listener.

    Attributes:
        program: The name of the program; of a Python process its script or module.
        address: The address of a port, or the path of a socket.
        port: 0 for a socket with a path.
    """

    program: str
    address: str
    port: int = 0


def doors(*tops: int) -> list[Door]:
    """Return the listeners of processes and of all their children, sorted."""
    parents = {int(each.parent.name): _parent(each) for each in Path("/proc").glob("[0-9]*/stat")}
    family = {*tops}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sorted({door for process in family for door in _doors_of(process)})


def declared(page: str, mode: str) -> set[str]:
    """Return the programs that docs/security.md lets listen in a mode.

    Args:
        page: The text of the page.
        mode: `test kit`, `asya run`, `asya dev` or `local cloud`.
    """
    lines = page.partition("| program | in |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip().replace("`", "") for cell in line.split("|")[1:3]] for line in lines]
    return {program for program, modes in rows if modes == "all" or mode in modes.split(", ")}


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # ended meanwhile


def _doors_of(process: int) -> list[Door]:
    try:
        words = [word for word in Path(f"/proc/{process}/cmdline").read_text().split("\0") if word]
        links = [_target(each) for each in Path(f"/proc/{process}/fd").iterdir()]
        listening = {**_ports(process, "tcp"), **_ports(process, "tcp6"), **_paths(process)}
    except OSError:
        return []  # ended meanwhile
    if not words:
        return []  # ended, and its parent has not asked for it yet
    program = _program(words)
    inodes = [link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")]
    return [Door(program, *listening[inode]) for inode in inodes if inode in listening]


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""  # closed meanwhile, as the one that lists the descriptors of this process


def _program(words: list[str]) -> str:
    """Return the last two parts of a script, or the module of `python -m`, or the name of the program."""
    program, *arguments = words
    while arguments and "python" in Path(program).name:
        word = arguments.pop(0)
        if word == "-m":
            return arguments[0]
        if word.endswith(".py") or not word.startswith("-"):
            return "/".join(Path(word).parts[-2:])
    return Path(program).name


def _ports(process: int, kind: str) -> dict[str, tuple[str, int]]:
    found = {}
    for line in Path(f"/proc/{process}/net/{kind}").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == _LISTENING:
            address, _, port = local.rpartition(":")
            found[inode] = (_address(bytes.fromhex(address)), int(port, 16))
    return found


def _address(words: bytes) -> str:
    """Return the address that the kernel shows as words of the machine, which are little-endian here."""
    raw = b"".join(words[start : start + 4][::-1] for start in range(0, len(words), 4))
    family = socket.AF_INET if len(raw) == struct.calcsize("4s") else socket.AF_INET6
    return socket.inet_ntop(family, raw).removeprefix("::ffff:")


def _paths(process: int) -> dict[str, tuple[str, int]]:
    found = {}
    for line in Path(f"/proc/{process}/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split(maxsplit=7)
        if int(flags, 16) & _LISTENS:
            found[inode] = ("".join(path), 0)
    return found


def asked_for_a_block(port: int, block: str) -> bytes:
    """Return what a listener of Spark answers to a stranger who asks for a cached block; empty if it says nothing."""
    names = b"".join(_text(each) for each in ("app", "driver"))
    body = bytes([_OPEN_BLOCKS]) + names + struct.pack(">i", 1) + _text(block)
    head = struct.pack(">bqi", _RPC_REQUEST, 7, len(body))
    answer = b""
    with socket.create_connection(("127.0.0.1", port), _SECONDS) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(head) + len(body)) + head + body)
        try:
            while len(answer) < 8 or len(answer) < struct.unpack(">q", answer[:8])[0]:
                part = stranger.recv(65536)
                if not part:
                    break
                answer += part
        except (TimeoutError, ConnectionError):
            pass
    return answer


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()
