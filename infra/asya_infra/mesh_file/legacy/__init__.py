"""Upgrades the legacy forms of a mesh file to current keys before validation (`protocol §14`).

Each module upgrades one form. A contradiction or a key without a counterpart is a problem at its line.
"""

from asya_infra.mesh_file.legacy.upgrade import UpgradeResult, upgrade

__all__ = ["UpgradeResult", "upgrade"]
