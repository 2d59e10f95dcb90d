"""Typed contracts: converts between JSON values and the types of a handler's annotations (`protocol §6`).

Standard library only, because heavy jobs use this package too. pydantic and msgspec are used only for types made with them.
"""
