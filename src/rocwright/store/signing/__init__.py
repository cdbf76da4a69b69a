"""Who says so: keys, signatures over what is said, and JSON from strangers."""
