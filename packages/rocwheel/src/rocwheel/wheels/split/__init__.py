"""A wheel in pieces, a neutral one and one for each GPU target, and put together again."""
