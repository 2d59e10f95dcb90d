"""`asya trigger`: lists, shows, pauses, resumes and fires triggers."""
