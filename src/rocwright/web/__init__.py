"""The dashboard, the package index and the artifacts, served by one process."""
