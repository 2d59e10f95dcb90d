"""The flight-delay example: two Spark jobs, each a function from a payload to a richer payload."""

from .cleaning import clean_flights
from .statistics import delay_statistics

__all__ = ["clean_flights", "delay_statistics"]
