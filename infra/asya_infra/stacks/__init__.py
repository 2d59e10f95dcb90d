"""The stacks of a mesh: state, queues, gateway, functions, deployed in that order."""
