"""A user's end handler, which checks its environment at import."""

import json
import os
from typing import Any

from asya import data

if os.environ.get("ASYA_HANDLER_MODE") != "envelope":
    raise RuntimeError("end handlers run in envelope mode")
if os.environ.get("ASYA_ENABLE_VALIDATION", "true") == "true":
    raise RuntimeError("end handlers run without validation")


def keep(envelope: dict[str, Any]) -> dict[str, Any]:
    """Stores the envelope; its return value is ignored."""
    data.write(f"archive/{envelope['id']}.json", json.dumps(envelope).encode())
    return {}
