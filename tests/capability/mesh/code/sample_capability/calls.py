"""Answers the calls of the gateway."""

from dataclasses import dataclass
from datetime import datetime

from asya.gateway.http.router import Request, Response
from sample_capability.store import Stamps


@dataclass(frozen=True)
class StampCalls:
    """The calls about stamps."""

    stamps: Stamps

    def counts(self, _request: Request, _now: datetime) -> Response:
        """Return the number of stamps by actor."""
        return Response(200, self.stamps.counts())
