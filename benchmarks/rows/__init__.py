"""One module a row of the table."""
