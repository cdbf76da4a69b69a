"""Who is told of what changed: rows that broke, pass again or were promoted, and what waits for a person."""
