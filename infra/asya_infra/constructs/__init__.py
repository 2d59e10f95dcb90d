"""CDK constructs by capability. The stacks combine them."""
