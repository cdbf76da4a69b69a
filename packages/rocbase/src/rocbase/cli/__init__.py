"""The frame of a command line: how it starts, tells of failures, prints tables, ends."""
