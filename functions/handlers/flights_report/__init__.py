"""The report of the flight-delay example: renders statistics as one self-contained HTML page."""

from .page import render

__all__ = ["render"]
