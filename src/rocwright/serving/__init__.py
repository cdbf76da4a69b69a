"""How does what was built run as a server: which one, started how, on what, and ended how?"""
