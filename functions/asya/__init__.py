"""The actor mesh: protocol, runtime, routing decisions, AWS edges and Lambda entry points.

Handlers import from here: `from asya import data, fan_out`.
"""

from asya.runtime.fan_out import fan_out

__all__ = ["fan_out"]
