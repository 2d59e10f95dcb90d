"""The functions of x-pause and x-resume, and their sweep."""
