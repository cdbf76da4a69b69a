"""Trouble: what broke, and what to do about it."""
