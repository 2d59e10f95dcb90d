"""The report of the flight-delay example: statistics in, one self-contained HTML page out."""

from .page import render

__all__ = ["render"]
