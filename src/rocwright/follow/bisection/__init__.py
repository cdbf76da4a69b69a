"""Find the upstream change that broke a build: first the pins, then the commit."""
