"""The data of a mesh, for jobs: resolves references in payloads to URIs for Spark.

References are relative to the data URI in the environment variable `ASYA_DATA_URI`, as in light handlers (`asya.data`).
"""

import os

from asya.protocol.data_references import check_reference

VARIABLE = "ASYA_DATA_URI"


def uri(reference: str) -> str:
    """The absolute URI of a file or folder.

    Raises:
        ValueError: if the reference is malformed.
        RuntimeError: if the variable is not set, outside a mesh.
    """
    base = os.environ.get(VARIABLE)
    if not base:
        raise RuntimeError(f"{VARIABLE} is not set. A mesh sets it; in a test, set it to file:///your/folder/")
    return f"{base.rstrip('/')}/{check_reference(reference)}"
