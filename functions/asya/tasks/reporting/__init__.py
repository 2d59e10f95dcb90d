"""Reports: the messages of hops to the gateway about their tasks.

It has no entry points; the functions of other slices use it.
"""
