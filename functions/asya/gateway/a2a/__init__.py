"""Tools for other agents: Agent2Agent."""
