"""The keys of `telemetry` in the mesh file: where the spans of traces go."""

import re
from typing import Annotated, Any

from msgspec import Meta, Struct
from pydantic import BeforeValidator, WithJsonSchema

from asya.protocol.mesh_keys import Texts
from asya_infra.mesh_file.sections import Written

LOCAL_COLLECTOR = "http://localhost:4318"

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?)%")


def _parse_share(text: Any) -> float:
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"should be a share such as 5%; got {text!r}")
    if not 0 < float(match[1]) <= 100:
        raise ValueError(f"should be more than 0% and at most 100%; got {text}")
    return float(match[1]) / 100


Share = Annotated[
    float, BeforeValidator(_parse_share), WithJsonSchema({"type": "string", "pattern": f"^{_PERCENT.pattern}$"})
]


class TelemetrySection(Struct, frozen=True, kw_only=True):
    """Where functions send the spans of traces; nowhere by default."""

    otlp: str | None = None
    """The base URL of a collector that takes OTLP over HTTP."""
    collector: Texts = ()
    """The ARNs of Lambda layers with a collector and its configuration; it listens at `http://localhost:4318`."""
    xray: bool = False
    """Whether spans go to X-Ray, over its OTLP endpoint."""
    sample: Annotated[Share, Meta(extra_json_schema={"default": "100%"})] = 1.0
    """The share of traces that are recorded."""
    written: Written = {}

    @property
    def endpoint(self) -> str | None:
        """The base URL of the collector; None without one."""
        return self.otlp or (LOCAL_COLLECTOR if self.collector else None)

    @property
    def is_on(self) -> bool:
        """Whether functions record spans."""
        return self.xray or self.endpoint is not None
