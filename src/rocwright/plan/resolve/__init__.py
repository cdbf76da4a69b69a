"""Which exact versions answer a request: the lock."""
