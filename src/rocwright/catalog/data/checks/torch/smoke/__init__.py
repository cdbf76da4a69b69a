"""Smoke suites: whether a torch, and what stands on it, computes rightly on a device.

Only the standard library and torch are needed. The parent (main, runner, report) never imports torch: a child
process does, and may crash or hang.
"""
