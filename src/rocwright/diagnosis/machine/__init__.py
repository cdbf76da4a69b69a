"""What a machine is, read from its kernel: one question a module, each over a tree of files."""
