"""A changed function gets new processes, and busy ones end after their call; shown with MiniStack's own pool of workers."""

import json
import subprocess
from typing import Any

from tests.paths import PROJECT

CLOUD_PYTHON = PROJECT / ".venv-cloud" / "bin" / "python"
PROGRAM = """
import json, os, runpy, subprocess, sys, threading
from types import SimpleNamespace
from ministack.core import lambda_runtime
module = runpy.run_path(sys.argv[1])
kinds = {}
pool = SimpleNamespace(_execute_function_warm=lambda func, event, request: kinds[func["route"]]())
os.environ[module["LONG_POLLS_VARIABLE"]] = "POST /mcp,POST /a2a"
module["install"](lambda_runtime, pool)

def begin(code):
    config = {"FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:f"}
    worker, _ = pool.acquire_worker("f", config, code)
    if worker._proc is None:
        worker._proc = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    return worker

def runs(process):
    return process.poll() is None

def deploy():
    lambda_runtime.invalidate_worker("f", qualifier="$LATEST")

results = {}
"""


def results_of(scenario: str) -> Any:
    """Run a scenario in MiniStack's interpreter and return its `results`."""
    program = f"{PROGRAM}\n{scenario}\nprint(json.dumps(results))"
    module = PROJECT / "infra" / "asya_local" / "ministack" / "function_workers.py"
    command = [str(CLOUD_PYTHON), "-I", "-c", program, str(module)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_busy_process_ends_after_its_call() -> None:
    scenario = """
busy, idle = begin(b"1"), begin(b"1")
first, second = busy._proc, idle._proc
pool.release_worker(idle)
deploy()
results["in the call"] = [runs(first), runs(second)]
results["new process"] = begin(b"2") is not busy
pool.release_worker(busy)
results["after the call"] = runs(first)
"""
    assert results_of(scenario) == {"in the call": [True, False], "new process": True, "after the call": False}


def test_a_process_is_kept_for_the_next_call() -> None:
    scenario = """
worker = begin(b"1")
process = worker._proc
pool.release_worker(worker)
results["same"] = begin(b"1") is worker
results["runs"] = runs(process)
"""
    assert results_of(scenario) == {"same": True, "runs": True}


def test_the_process_of_a_failed_call_ends() -> None:
    """MiniStack drops all processes of the function and releases None."""
    scenario = """
other = begin(b"1")
failed = begin(b"1")._proc
deploy()
pool.release_worker(None)
results["failed"] = runs(failed)
results["other"] = runs(other._proc)
"""
    assert results_of(scenario) == {"failed": False, "other": True}


def test_a_call_that_waited_leaves_no_process_with_old_code() -> None:
    """Calls wait while all processes are busy; the function changes meanwhile."""
    scenario = """
busy = [begin(b"1") for _ in range(module["MAX_PROCESSES"])]
waiting = []
thread = threading.Thread(target=lambda: waiting.append(begin(b"1")))
thread.start()
deploy()
for worker in busy:
    pool.release_worker(worker)
thread.join()
pool.release_worker(waiting[0])
results["code"] = begin(b"2").code_zip.decode()
results["waited"] = waiting[0]._proc is None
"""
    assert results_of(scenario) == {"code": "2", "waited": True}


def test_long_polls_leave_processes_to_calls_that_do_not_wait() -> None:
    scenario = """
most = module["MAX_PROCESSES"]
held = threading.Barrier(most + 1)
over = threading.Event()
at_work = []

def call(route):
    pool._execute_function_warm({"route": route}, {"routeKey": route}, "1")

def long_poll():
    begin(b"1")
    held.wait(10)
    over.wait(10)

def short_call():
    at_work.append("short")
    pool.release_worker(begin(b"1"))

kinds["POST /mcp"], kinds["GET /health"] = long_poll, short_call
waiting = [threading.Thread(target=call, args=["POST /mcp"]) for _ in range(most)]
[thread.start() for thread in waiting]
held.wait(10)
call("GET /health")
results["while they wait"] = at_work.copy()
kinds["POST /mcp"] = lambda: at_work.append(begin(b"1") is not None)
further = threading.Thread(target=call, args=["POST /mcp"])
further.start()
call("GET /health")
results["a further long poll waits"] = at_work.copy()
deploy()  # those at work leave the pool
further.join(10)
results["then"] = at_work[-1]
over.set()
"""
    assert results_of(scenario) == {
        "while they wait": ["short"],
        "a further long poll waits": ["short", "short"],
        "then": True,
    }


def test_functions_have_an_interpreter_of_their_own() -> None:
    scenario = """
import os
os.environ["ASYA_LOCAL_FUNCTION_PYTHON"] = "/functions/python"
results["python"] = lambda_runtime._detect_runtime_binary("python3.13")[0]
results["node"] = lambda_runtime._detect_runtime_binary("nodejs22.x")[0]
"""
    assert results_of(scenario)["node"] == "node"
    assert results_of(scenario)["python"] == "/functions/python"
