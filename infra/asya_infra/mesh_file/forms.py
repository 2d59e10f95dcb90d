"""The forms of values in the mesh file: durations (`30s`, `7d`), sizes (`512`, `256k`), and what the table marks with `Form`."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, WithJsonSchema
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from asya.capabilities.triggers.slots import check_cron
from asya.protocol.json_pointer import check_pointer
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.source import did_you_mean

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"k": 1024, "m": 1024**2, "g": 1024**3}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_SIZE = re.compile(r"([0-9]{1,9})([kmg]?)", re.IGNORECASE | re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")
_PARAMETER = re.compile(r"(/?[A-Za-z0-9_.-]+)(/[A-Za-z0-9_.-]+)*")


def parse_duration(text: Any) -> float:
    """Parse a duration to seconds.

    Raises:
        ValueError: the text is not a duration such as `500ms`, `30s`, `10m`, `2h` or `7d`.
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"should be a duration such as 500ms, 30s, 10m, 2h or 7d; got {text!r}")
    return int(match[1]) * _SECONDS[match[2]]


def parse_bytes(text: Any) -> int:
    """Parse a size to bytes. A number without a unit is in megabytes.

    Raises:
        ValueError: the text is not a size such as `512`, `256k` or `4g`.
    """
    plain = str(text) if isinstance(text, int) and not isinstance(text, bool) else text
    match = _SIZE.fullmatch(plain) if isinstance(plain, str) else None
    if match is None:
        raise ValueError(f"should be a size such as 512 (megabytes), 256k or 4g; got {text!r}")
    return int(match[1]) * _BYTES[match[2].lower() or "m"]


def parse_megabytes(text: Any) -> int:
    """Parse a size to megabytes.

    Raises:
        ValueError: as in `parse_bytes`, or the size is not a whole number of megabytes.
    """
    size = parse_bytes(text)
    if size % _BYTES["m"]:
        raise ValueError(f"should be a whole number of megabytes; got {text!r}")
    return size // _BYTES["m"]


def parse_lifetime(text: Any) -> float | None:
    """Parse a retention to seconds; `none` becomes None, which means forever.

    Raises:
        ValueError: as in `parse_duration`.
    """
    return None if text in (None, "none") else parse_duration(text)


def format_duration(seconds: float) -> str:
    """Return a duration in its shortest form: `1500ms`, `90s`, `2h`."""
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds // _SECONDS[unit])}{unit}"
    return f"{round(seconds * 1000)}ms" if seconds else "0s"


DURATION_SCHEMA: JsonDict = {
    "type": "string",
    "pattern": r"^[0-9]{1,9}(ms|s|m|h|d)$",
    "examples": ["500ms", "30s", "10m", "2h"],
}
SIZE_SCHEMA: JsonDict = {"type": ["integer", "string"], "pattern": r"^[0-9]{1,9}[kmgKMG]?$", "examples": [512, "4g"]}

_LIFETIME_SCHEMA: JsonDict = {"anyOf": [DURATION_SCHEMA, {"const": "none"}, {"type": "null"}]}
Megabytes = Annotated[int, BeforeValidator(parse_megabytes), WithJsonSchema(SIZE_SCHEMA)]


@dataclass(frozen=True)
class OneOrMore:
    """The schema of a list of text whose only value needs no brackets.

    Attributes:
        or_flag: whether `true` and `false` have a meaning of their own, and are no text.
    """

    or_flag: bool = False

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the list, or of its value."""
        many = handler(core_schema)
        return {"anyOf": [many["items"], *([{"type": "boolean"}] if self.or_flag else []), many]}


def check_reference(reference: str, what: str = "the text") -> str:
    """Return the name of a secret or, after `ssm:`, of a parameter.

    Raises:
        ValueError: the text is no such name; the message does not have it, because it may be a secret.
    """
    is_parameter = reference.startswith(PARAMETER_PREFIX)
    if not (_PARAMETER if is_parameter else _SECRET).fullmatch(reference.removeprefix(PARAMETER_PREFIX)):
        kind = "a parameter of Systems Manager" if is_parameter else "a secret of Secrets Manager"
        raise ValueError(f"{what} is not the name of {kind}; the mesh file has names, never values")
    return reference


def _check_address(text: str) -> str:
    if not re.match(r"https?://[^/\s]+", text):
        raise ValueError(f"should be a URL such as https://s3.example; got {text!r}")
    return text


def _check_host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?", text):
        raise ValueError(f"should be a host such as callbacks.example.com, without https:// and path; got {text!r}")
    return text


def _check_webhook_id(text: str) -> str:
    if text.startswith("/"):
        return check_pointer(text)
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text):
        raise ValueError(f"should be a JSON pointer such as /id or a header such as X-GitHub-Delivery; got {text!r}")
    return text


@cache
def _zones() -> frozenset[str]:
    """The zones of the package `tzdata`, which the functions have. A machine may have others, such as `localtime`."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def _check_zone(name: str) -> str:
    if name in _zones():
        return name
    # Zones without a place are fixed offsets and old names: CEST is not EST.
    places = (zone for zone in sorted(_zones()) if "/" in zone)
    hint = did_you_mean(name.removeprefix("posix/").removeprefix("right/"), places)
    raise ValueError(f"should be a time zone such as Europe/Oslo; got {name!r}{hint}")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


FORMS: dict[str, tuple[Any, ...]] = {
    "address": (AfterValidator(_check_address),),
    "bytes": (BeforeValidator(parse_bytes), WithJsonSchema(SIZE_SCHEMA)),
    "cron": (AfterValidator(check_cron),),
    "duration": (BeforeValidator(parse_duration), WithJsonSchema(DURATION_SCHEMA)),
    "floats": (),
    "host": (AfterValidator(_check_host),),
    "lifetime": (BeforeValidator(parse_lifetime), WithJsonSchema(_LIFETIME_SCHEMA)),
    "pointer": (AfterValidator(check_pointer),),
    "secret": (AfterValidator(check_reference),),
    "texts": (BeforeValidator(_as_list), OneOrMore()),
    "webhook id": (AfterValidator(_check_webhook_id),),
    "zone": (AfterValidator(_check_zone),),
}
"""The marks of pydantic for each form."""
