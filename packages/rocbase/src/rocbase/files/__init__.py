"""The one atomic writer and the one hasher."""
