"""The stacks of a mesh, deployed in this order: state, queues, gateway, functions."""
