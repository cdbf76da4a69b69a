"""Which known issue does a log tell of, and at which line?"""
