"""The Spark jobs of the flight-delay example: each extends the payload."""

from .cleaning import clean_flights
from .statistics import delay_statistics

__all__ = ["clean_flights", "delay_statistics"]
