"""The deployed code of a mesh, in one package per capability.

Handlers import `branches`, `data` and `fan_out` from this package.
"""

from asya.runtime.fan_out import branches, fan_out

__all__ = ["branches", "fan_out"]
