"""Reads the payload of a call from the command line."""

from __future__ import annotations

import msgspec

from asya_cli.errors import CommandError
from asya_cli.json_input import raw_json, read_bytes

_ADVICE = "Give @FILE, - for standard input, JSON such as '{\"n\": 3}', or keys such as n=3."


def read_payload(parts: list[str], subject: str = "--payload") -> msgspec.Raw:
    """Return a payload: a file, standard input, JSON, or keys with values.

    Args:
        parts: The values of the option or argument.
        subject: What errors call it.

    Raises:
        CommandError: A part is none of these, keys are mixed with another form, or a key comes twice.
    """
    if not parts:
        return msgspec.Raw(b"{}")
    if len(parts) == 1 and (parts[0] == "-" or parts[0].startswith("@")):
        source = parts[0].removeprefix("@")
        return _json(read_bytes(source), source)
    if len(parts) == 1 and parts[0].lstrip()[:1] in ("{", "["):
        return _json(parts[0].encode("utf-8", "surrogateescape"), subject)
    for part in parts:
        if not part.isprintable() and any("\ud800" <= character <= "\udfff" for character in part):
            raise CommandError(f"{subject} is not UTF-8: {part!a}")
    values: dict[str, msgspec.Raw] = {}
    for part in parts:
        key, value = _key_and_value(part, subject)
        if key in values:
            raise CommandError(f"{subject}: the key {key!r} comes twice", f"Give it once; a list is {key}='[1, 2]'.")
        values[key] = value
    return msgspec.Raw(msgspec.json.encode(values))


def _json(text: bytes, source: str) -> msgspec.Raw:
    """Return JSON without white space; its numbers stay as they are written."""
    return msgspec.Raw(msgspec.json.format(bytes(raw_json(text, source, _ADVICE)), indent=-1))


def _key_and_value(part: str, subject: str) -> tuple[str, msgspec.Raw]:
    key, sign, text = part.partition("=")
    if not sign and (part == "-" or part.startswith(("@", "{", "["))):
        raise CommandError(f"{subject}: {part!r} is a whole payload, so no key fits beside it", _ADVICE)
    if not sign or not key:
        raise CommandError(f"{subject}: {part!r} is neither KEY=VALUE nor a payload", _ADVICE)
    content = text.encode("utf-8", "surrogateescape")
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.MsgspecError:
        return key, msgspec.Raw(msgspec.json.encode(text))
    except RecursionError:
        pass  # JSON that nobody could read, which the next line says
    return key, _json(content, f"{subject}: {key}")
