"""Reports: what a hop tells the gateway about its task."""
