"""Whether an artifact does what it should, when it is run."""
