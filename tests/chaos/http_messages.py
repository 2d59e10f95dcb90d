"""Reads HTTP/1.1 messages as bytes, without changing them: signatures stay valid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

LARGEST_HEAD = 1 << 20
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_CHUNKED = re.compile(rb"^transfer-encoding:.*chunked", re.IGNORECASE | re.MULTILINE)
_EXPECT = re.compile(rb"^expect:[^\r\n]*\r\n", re.IGNORECASE | re.MULTILINE)
_CLOSE = re.compile(rb"^connection: *close", re.IGNORECASE | re.MULTILINE)
_BODILESS = re.compile(rb"HTTP/1\.[01] (1\d\d|204|304)")


@dataclass(frozen=True)
class Message:
    """A request or a response: its start line with headers, and its body as it was transferred."""

    head: bytes
    body: bytes

    @property
    def bytes(self) -> bytes:
        return self.head + self.body

    @property
    def is_head_request(self) -> bool:
        return self.head.startswith(b"HEAD ")

    @property
    def closes(self) -> bool:
        """Whether the connection closes after this message."""
        return _CLOSE.search(self.head) is not None


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Message:
    """Read a request; a client that waits for `100 Continue` gets it, and the header that asks for it is removed.

    Raises:
        asyncio.IncompleteReadError: The connection closes.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    if _EXPECT.search(head):
        head = _EXPECT.sub(b"", head)
        writer.write(CONTINUE)
    return Message(head, await _read_body(reader, head))


async def read_response(reader: asyncio.StreamReader, request: Message) -> Message:
    """Read the response to a request.

    Raises:
        asyncio.IncompleteReadError: The connection closes before its end.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    if request.is_head_request or _BODILESS.match(head):
        return Message(head, b"")
    return Message(head, await _read_body(reader, head))


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if _CHUNKED.search(head):
        parts = []
        while True:
            line = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(line.split(b";")[0], 16) + 2)
            parts += [line, chunk]
            if chunk == b"\r\n":
                return b"".join(parts)
    length = _LENGTH.search(head)
    return await reader.readexactly(int(length[1])) if length else b""
