"""Benchmarks: side by side in one run, as ratios of medians, because machines differ and are noisy (`make bench`)."""
