"""The deployed code of a mesh, in one package per capability.

Handlers import `data` and `fan_out` from this package.
"""

from asya.runtime.fan_out import fan_out

__all__ = ["fan_out"]
