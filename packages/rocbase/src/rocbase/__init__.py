"""What every program here stands on: errors, files, processes, tables, the frame of a command line."""
