"""Reads the payload of a call from the command line."""

from __future__ import annotations

import msgspec

from asya_cli.errors import CommandError
from asya_cli.send import read_bytes


def read_payload(parts: list[str]) -> msgspec.Raw:
    """Return the payload of `--payload`: a file, standard input, JSON, or keys with values.

    Raises:
        CommandError: A part is none of these, or keys are mixed with another form.
    """
    if not parts:
        return msgspec.Raw(b"{}")
    if len(parts) == 1 and (parts[0] == "-" or parts[0].startswith("@")):
        source = parts[0].removeprefix("@")
        return _json(read_bytes(source), source)
    if len(parts) == 1 and parts[0].lstrip()[:1] in ("{", "["):
        return _json(parts[0].encode(), "--payload")
    values = dict(_key_and_value(part) for part in parts)
    return msgspec.Raw(msgspec.json.encode(values))


def _json(text: bytes, source: str) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text)))
    except msgspec.MsgspecError as error:
        raise CommandError(f"{source} is not valid JSON: {error}") from error


def _key_and_value(part: str) -> tuple[str, object]:
    key, sign, text = part.partition("=")
    if not sign or not key:
        raise CommandError(
            f"--payload {part} is neither KEY=VALUE nor a payload", "Give @FILE, -, JSON, or keys: --payload n=3."
        )
    try:
        return key, msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return key, text
