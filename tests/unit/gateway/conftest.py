"""The gateway's functions over an emulated table and queues."""

from tests.doubles.gateway_functions import clients_of_this_module as clients_of_this_module  # noqa: PLC0414
from tests.doubles.gateway_functions import gateway as gateway  # noqa: PLC0414
