"""Decides who calls a local cloud. MiniStack's process loads these modules without the rest of the project.

So they import the standard library and each other only.
"""
