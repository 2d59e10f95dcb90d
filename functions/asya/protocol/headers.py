"""The managed headers and who may touch them (`protocol §3`)."""

FIRST_ATTEMPT = "x-asya-first-attempt"
GATEWAY_URL = "x-asya-gateway-url"
MESH_STATUS = "x-asya-mesh-status"
ROOT = "x-asya-root"
ROUTE_OVERRIDE = "x-asya-route-override"
ROUTE_RESOLVED = "x-asya-route-resolved"
FAN_IN = "x-asya-fan-in"
PAUSE = "x-asya-pause"
RESUME_INPUT = "x-asya-resume-input"
RESUME_AT = "x-asya-resume-at"
PAYLOAD_REF = "x-asya-payload-ref"
NOT_BEFORE = "x-asya-not-before"
HOOK = "x-asya-hook"
REPLAY_OF = "x-asya-replay-of"
GENERATION = "x-asya-generation"
# The position at which an id gave its children ids of the older form (`protocol §14`, `child_ids: suffix`).
SUFFIXED_AT = "x-asya-suffixed-at"
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

MANAGED_PREFIX = "x-asya-"
# What a producer may set although it is managed: the gateway lets these through.
PRODUCER_HEADERS = frozenset({MESH_STATUS, ROUTE_OVERRIDE})


def is_read_only(name: str) -> bool:
    """Whether handlers may only read this header: all managed ones, but the one that makes a fan-out."""
    return is_managed(name) and name != FAN_IN


def is_managed(name: str) -> bool:
    """Whether the runtime owns this header."""
    return name.startswith(MANAGED_PREFIX) or name in (TRACEPARENT, TRACESTATE)
