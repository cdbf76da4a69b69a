"""Is this machine fit to build and to run, and what helps?"""
