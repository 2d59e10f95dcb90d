"""The product itself: where its files lie, and the environments in which its parts run.

`places` names the files, of a checkout and of an installed package. `environments` gives the interpreters of the local cloud,
the CDK and Spark; an installed package makes each once, in the user's cache.
"""
