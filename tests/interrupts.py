"""Restores Ctrl-C in child processes: a suite in the background ignores it, and its children inherit that."""

from __future__ import annotations

import signal


def restore_interrupts() -> None:
    """Restores the default handlers of SIGINT and SIGHUP, which `nohup` ignores; for `preexec_fn` of a child process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
