"""A picture of what lies in a wheel: by file, target and size."""
