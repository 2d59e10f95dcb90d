"""The HTTP APIs and the functions behind them."""
