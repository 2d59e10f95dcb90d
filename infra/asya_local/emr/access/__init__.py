"""Who calls the stand-in, and what policies allow."""
