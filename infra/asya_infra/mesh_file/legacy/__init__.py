"""What users of the older generations wrote, put into today's keys before anything is checked (`protocol §14`).

Each module takes one older form. What contradicts a key that is there too, or has no counterpart any more, is told like any other
mistake, at the place where it stands.
"""

from asya_infra.mesh_file.legacy.upgrade import UpgradeResult, upgrade

__all__ = ["UpgradeResult", "upgrade"]
