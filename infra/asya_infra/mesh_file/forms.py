"""The forms of values in the mesh file: what a field of the table marks with `Form`, as marks of pydantic."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, get_args

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from asya.capabilities.triggers.slots import check_cron
from asya.protocol.json_pointer import check_pointer
from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.problems import did_you_mean
from asya_infra.mesh_file.units import Bytes, Duration, Lifetime

_SECRET = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")
_PARAMETER = re.compile(r"(/?[A-Za-z0-9_.-]+)(/[A-Za-z0-9_.-]+)*")


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
    "bytes": get_args(Bytes)[1:],
    "cron": (AfterValidator(check_cron),),
    "duration": get_args(Duration)[1:],
    "floats": (),
    "host": (AfterValidator(_check_host),),
    "lifetime": get_args(Lifetime)[1:],
    "pointer": (AfterValidator(check_pointer),),
    "secret": (AfterValidator(check_reference),),
    "texts": (BeforeValidator(_as_list), OneOrMore()),
    "webhook id": (AfterValidator(_check_webhook_id),),
    "zone": (AfterValidator(_check_zone),),
}
"""The marks of pydantic for each form."""
