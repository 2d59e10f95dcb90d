"""The sidecar function of a light actor."""
