"""Moves the clock of each Python process that starts with this folder on its path, and nothing else.

The monotonic clock goes on, so waits and timeouts last as long as before. An environment without time-machine keeps its clock.
"""

import os
import time

if offset := os.environ.get("ASYA_TEST_CLOCK_OFFSET"):
    try:
        import time_machine
    except ImportError:
        pass  # an environment of another tool
    else:
        # A number has no zone, so that of the process stays the one of `TZ`.
        time_machine.travel(time.time() + float(offset), tick=True).start()
