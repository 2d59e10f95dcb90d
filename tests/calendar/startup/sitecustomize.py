"""Moves the clock of each Python process that starts with this folder on its path, and nothing else.

The monotonic clock goes on, so waits and timeouts last as long as before. An environment without time-machine keeps its clock.
"""

import os
import sys
import time

if offset := os.environ.get("ASYA_TEST_CLOCK_OFFSET"):
    try:
        import time_machine
    except ImportError:
        pass  # an environment of another tool
    else:
        # A number has no zone, so that of the process stays the one of `TZ`.
        time_machine.travel(time.time() + float(offset), tick=True).start()
        if readers := os.environ.get("ASYA_TEST_CLOCK_READERS"):
            from pathlib import Path

            read, known = time_machine.Traveller.time_ns, set()

            def time_ns(self: time_machine.Traveller) -> int:
                """Read the clock, and note the test for which code outside of libraries asks for the time."""
                if self is time_machine.traveller_stack[0]:
                    asking = sys._getframe(1).f_code.co_filename
                    is_library = "site-packages" in asking or asking.startswith((sys.base_prefix, "<frozen"))
                    # While tests are collected the variable is missing, and a module asks for itself.
                    test = os.environ.get("PYTEST_CURRENT_TEST", asking).partition("::")[0]
                    if not is_library and test not in known:
                        known.add(test)
                        with Path(readers).open("a", encoding="utf-8") as file:
                            file.write(f"{test}\n")
                return read(self)

            time_machine.Traveller.time_ns = time_ns
