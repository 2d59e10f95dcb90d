"""The S3 object metadata of a result (`protocol §11`)."""

from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from asya.protocol.envelope import Envelope
from asya.protocol.keys import last_actor_name

# The limit of S3 covers the names and values of user metadata together.
METADATA_LIMIT = 2048
# Metadata are HTTP headers: printable ASCII stays as it is, except the space, which is lost at the ends.
_PLAIN = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"
# Left out, in this order, if the metadata are too large. The envelope has them all.
_OPTIONAL = ("root", "parent")


def result_metadata(envelope: Envelope, namespace: str) -> dict[str, str]:
    """Id, parent, root, namespace, generation, phase and last actor, percent-encoded; absent values are left out."""
    status = envelope.status
    values = {
        "id": envelope.id,
        "parent": envelope.parent_id,
        "root": envelope.root_id or envelope.id,
        "namespace": namespace,
        "generation": str(envelope.generation),
        "phase": (status.phase if status else None) or "succeeded",
        "last-actor": last_actor_name(envelope),
    }
    metadata = {
        name: quote(value.encode("utf-8", "surrogatepass"), safe=_PLAIN) for name, value in values.items() if value
    }
    for name in _OPTIONAL:
        if _size(metadata) > METADATA_LIMIT:
            metadata.pop(name, None)
    return metadata


def read_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """The values that `result_metadata` wrote."""
    return {name: unquote_to_bytes(value).decode("utf-8", "surrogatepass") for name, value in metadata.items()}


def _size(metadata: dict[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in metadata.items())
