"""Rows tried on bases that can be had: edits, configures, compilations and imports, each counted."""
