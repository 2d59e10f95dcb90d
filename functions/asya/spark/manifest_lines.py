"""The text of a manifest: a line with its head, then a line for each member (`protocol §10`).

Lines are read one by one, so that a large manifest takes the memory of its members and no more. Version 1 was one JSON object.
"""

from collections.abc import Iterable

import msgspec

from asya.protocol import text_lines
from asya.protocol.job_runs import VERSION, Manifest, ManifestHead, Member

_SPACES = bytes.maketrans(b"\r\n", b"  ")
_encoder = msgspec.json.Encoder()
_head_decoder = msgspec.json.Decoder(ManifestHead)
_member_decoder = msgspec.json.Decoder(Member)
_first_version_decoder = msgspec.json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """The text of a manifest in the present version."""
    fields = {name: getattr(manifest, name) for name in ManifestHead.__struct_fields__}
    head = ManifestHead(**{**fields, "version": VERSION, "count": len(manifest.members)})
    # In JSON a line break is white space between two values, and payloads keep that of their senders.
    lines = (_encoder.encode(line).translate(_SPACES) for line in (head, *manifest.members))
    return b"".join(line + b"\n" for line in lines)


def decode_manifest(chunks: Iterable[bytes]) -> Manifest:
    """The manifest in these pieces of its text.

    Raises:
        ValueError: if it is malformed, incomplete, or of another version.
    """
    lines = text_lines.lines(chunks)
    first = next(lines, b"")
    try:
        head = _head_decoder.decode(first)
    except msgspec.MsgspecError:
        head = None
    if head is None or head.version == 1:
        # A payload in version 1 keeps its line breaks, so its first line may be any part of it.
        return _first_version_decoder.decode(b"\n".join((first, *lines)))
    if head.version != VERSION:
        raise ValueError(f"it has version {head.version}, not {VERSION}")
    members = tuple(map(_member_decoder.decode, lines))
    if len(members) != head.count:
        raise ValueError(f"it has {len(members)} members, not {head.count}")
    return Manifest(**{name: getattr(head, name) for name in ManifestHead.__struct_fields__}, members=members)
