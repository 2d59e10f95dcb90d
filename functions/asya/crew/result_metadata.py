"""What S3 alone tells of a result: the object's metadata (`protocol §11`)."""

from urllib.parse import quote

from asya.protocol.envelope import Envelope
from asya.protocol.keys import last_actor_name

# S3 counts the names and the values of an object's own metadata together.
METADATA_LIMIT = 2048
# Metadata are HTTP headers. What is printable ASCII stays as it is; a blank would be lost at the ends.
_PLAIN = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"
# Of ids that are too long together: what is left out first. All of it is in the envelope.
_LEFT_OUT = ("root", "parent")


def result_metadata(envelope: Envelope, namespace: str) -> dict[str, str]:
    """Id, parent, root, namespace, generation, phase and last actor, percent-encoded; what does not apply is left out."""
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
    for name in _LEFT_OUT:
        if _size(metadata) > METADATA_LIMIT:
            metadata.pop(name, None)
    return metadata


def _size(metadata: dict[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in metadata.items())
