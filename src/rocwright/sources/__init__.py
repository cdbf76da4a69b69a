"""How a source is found, fetched, and known to be the right one."""
