"""Checks a list of Python packages against a GPU, and says what to write instead."""
