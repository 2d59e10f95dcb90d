"""The text of a manifest: a line with its head, then a line for each member (`protocol §10`).

Lines are read one by one, so that a large manifest takes the memory of its members and no more.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from asya.protocol import text_lines
from asya.protocol.job_runs import VERSION, Manifest, ManifestHead, Member


class _FirstLine(ManifestHead, frozen=True, kw_only=True, omit_defaults=True):
    """The head, with the number of lines that follow and the form of the text."""

    count: int
    version: int


_SPACES = bytes.maketrans(b"\r\n", b"  ")
_encoder = msgspec.json.Encoder()
_head_decoder = msgspec.json.Decoder(_FirstLine)
_member_decoder = msgspec.json.Decoder(Member)


def encode_manifest(manifest: Manifest) -> bytes:
    """The text of a manifest."""
    head = _FirstLine(**_settings(manifest), count=len(manifest.members), version=VERSION)
    # In JSON a line break is white space between two values, and payloads keep that of their senders.
    lines = (_encoder.encode(line).translate(_SPACES) for line in (head, *manifest.members))
    return b"".join(line + b"\n" for line in lines)


def decode_manifest(chunks: Iterable[bytes]) -> Manifest:
    """The manifest in these pieces of its text.

    Raises:
        ValueError: if it is malformed, incomplete, or of another version.
    """
    lines = text_lines.lines(chunks)
    head = _head_decoder.decode(next(lines, b""))
    if head.version != VERSION:
        raise ValueError(f"it has version {head.version}, not {VERSION}")
    members = tuple(map(_member_decoder.decode, lines))
    if len(members) != head.count:
        raise ValueError(f"it has {len(members)} members, not {head.count}")
    return Manifest(**_settings(head), members=members)


def _settings(head: ManifestHead) -> dict[str, Any]:
    return {name: getattr(head, name) for name in ManifestHead.__struct_fields__}
