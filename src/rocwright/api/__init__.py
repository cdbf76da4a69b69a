"""What Python programs call, and the command line too: names are strings, paths are str or Path."""
