"""Makers of sample data that tests and benchmarks share; nothing here imports pytest, tests or benchmarks."""
