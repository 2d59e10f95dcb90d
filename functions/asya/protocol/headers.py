"""The managed headers, and who may change them (`protocol §3`)."""

FIRST_ATTEMPT = "x-asya-first-attempt"
GATEWAY_URL = "x-asya-gateway-url"
MESH_STATUS = "x-asya-mesh-status"
ROOT = "x-asya-root"
ROUTE_OVERRIDE = "x-asya-route-override"
ROUTE_RESOLVED = "x-asya-route-resolved"
FAN_IN = "x-asya-fan-in"
# The origin and 5,000 items. The record of a set lists each slice, and the cost of a check grows with them.
MAX_SLICES = 5001
# Sets within a set. Each slice carries the headers of all its sets, and its end is told to each that it has opened.
MAX_ENCLOSING_SETS = 16
PAUSE = "x-asya-pause"
RESUME_INPUT = "x-asya-resume-input"
RESUME_AT = "x-asya-resume-at"
WAIT = "x-asya-wait"
PAYLOAD_REF = "x-asya-payload-ref"
NOT_BEFORE = "x-asya-not-before"
# The time since which an open circuit delays the envelope (`protocol §8`).
CIRCUIT_OPEN_SINCE = "x-asya-circuit-open-since"
# The version of the mesh that the sender of the message has (`protocol §3`).
MESH_VERSION = "x-asya-mesh-version"
HOOK = "x-asya-hook"
REPLAY_OF = "x-asya-replay-of"
OWNER = "x-asya-owner"
# Who started the task, for actors that serve owners in turns (`protocol §3.tenant`).
TENANT = "x-asya-tenant"
# The tool that started the task or its root: a label for people, on which nothing depends (`protocol §3`).
TOOL = "x-asya-tool"
TOOL_LIMIT = 128  # characters
SET_REPEAT = "x-asya-set-repeat"
GENERATION = "x-asya-generation"
# Shows that the sender holds the task (`asya.protocol.task_key`).
KEY = "x-asya-key"
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

MANAGED_PREFIX = "x-asya-"
# The managed headers that a producer may set; the gateway keeps them.
PRODUCER_HEADERS = frozenset({MESH_STATUS, ROUTE_OVERRIDE})


def is_read_only(name: str) -> bool:
    """Whether handlers may not change this header; of the managed headers they may change `x-asya-fan-in` only."""
    return is_managed(name) and name != FAN_IN


def is_managed(name: str) -> bool:
    """Whether the mesh owns this header."""
    return name.startswith(MANAGED_PREFIX) or name in (TRACEPARENT, TRACESTATE)
