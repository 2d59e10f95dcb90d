"""What the gateway's functions may do."""

from collections.abc import Iterable

from asya.protocol import names
from infra.addresses import Addresses
from infra.permissions import common
from infra.permissions.grant import Grant


def ingest(addresses: Addresses) -> list[Grant]:
    """Takes the mesh's reports."""
    return [common.logs(addresses, names.GATEWAY_INGEST), common.table(addresses, "tasks")]


def api(addresses: Addresses, actors: Iterable[str]) -> list[Grant]:
    """Makes tasks and shows them; a large payload goes by S3 like any sender's (`protocol §4`)."""
    return [
        common.logs(addresses, names.GATEWAY_API),
        common.table(addresses, "tasks"),
        common.send(addresses, actors),
        common.objects(addresses, common.WRITE, "inbox"),
    ]
