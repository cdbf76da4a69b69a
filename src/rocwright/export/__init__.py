"""The way out: a lock as plain files that need rocwright no more."""
