"""Dead letters: reported, redriven, replayed."""
