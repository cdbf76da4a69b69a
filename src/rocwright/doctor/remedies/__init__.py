"""Known failures mended by machine: which action, tried how, and what became of it."""
