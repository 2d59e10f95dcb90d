"""HTTP routes of Agent2Agent."""
