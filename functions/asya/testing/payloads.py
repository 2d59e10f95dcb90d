"""Builds payloads from models."""

import itertools
from collections.abc import Mapping
from typing import Any

from asya.contracts.annotations import Annotations
