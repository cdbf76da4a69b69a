"""Benchmarks of rocwright: ratios taken side by side in one run; nothing here is a test."""
