"""Declares the options of actors about legacy forms. Its calls of the gateway are in `http_calls` beside it."""

from asya.capabilities.legacy.options import CHILD_IDS, FAILED_PAYLOAD, RESPONSES
from asya.manifest import Capability

CAPABILITY = Capability(name="legacy", options=(CHILD_IDS, FAILED_PAYLOAD, RESPONSES))
