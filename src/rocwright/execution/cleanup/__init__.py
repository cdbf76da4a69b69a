"""What takes room on this machine, by kind, and its removal: oldest use first, never what is needed."""
