"""Small limits of messages, so that small payloads exercise the claim check."""

from functools import cached_property

from asya.function.aws import clients
from asya.function.aws.claim_check import ClaimCheck
from asya.protocol import names
from asya.testing.services.functions import SimulatedServices

OFFLOAD_FROM = 6 * 1024
MESSAGE_LIMIT = 8 * 1024


class SmallMessages(SimulatedServices):
    """The services of a function that stores payloads early."""

    @cached_property
    def claim_check(self) -> ClaimCheck:
        """See `Services`."""
        actor = self.settings.actor
        reader = None if actor in (names.SINK, names.SUMP) else actor
        return ClaimCheck(clients.s3(), self.settings.bucket, limit=OFFLOAD_FROM, reader=reader)
