"""The services and functions of a simulated cloud."""
