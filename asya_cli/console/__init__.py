"""Serves the console: a page in the browser that shows and repairs the tasks of a mesh.

`command` is `asya ui`. `server` serves the built page and passes a list of calls on to the gateway, signed with the
user's credentials; `guard` decides who may call it.
"""
