"""Benchmarks (`make bench`): ratios of medians, measured side by side, because machines differ and are noisy."""
