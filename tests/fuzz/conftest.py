"""Messages come from roles of the mesh, unless a test says otherwise."""

from tests.doubles.senders import known_secrets as known_secrets  # noqa: PLC0414
from tests.doubles.senders import listed_roles as listed_roles  # noqa: PLC0414
