"""MiniStack with the parts of AWS that it lacks. All of it runs in MiniStack's process, in `.venv-cloud`.

`server.py` is the process; the other modules replace parts of MiniStack and import nothing of this project.
"""
