"""Which change upstream broke a build: the pins, then the commit."""
