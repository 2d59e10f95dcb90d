"""Ctrl-C in tests: a suite started in the background has it ignored, and its children would inherit that."""

from __future__ import annotations

import signal


def heed_ctrl_c() -> None:
    """For a child process, before it becomes its program (`preexec_fn`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
