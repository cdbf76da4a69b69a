"""Makers of sample data that tests and benchmarks share; nothing here imports pytest, tests or benchmarks."""


class MissingError(Exception):
    """Something that must be fetched or installed first is not there; the words say what."""
