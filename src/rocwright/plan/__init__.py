"""Which steps follow from a lock, with which keys, and why one must run."""
