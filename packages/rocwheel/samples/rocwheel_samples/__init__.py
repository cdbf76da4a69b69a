"""Makers of sample data that tests and benchmarks share, of rocwright too."""


class MissingError(Exception):
    """Something that must be fetched or installed first is not there; the words say what."""
