"""Which model is served: found, brought, read and held against the memory before anything loads it."""
