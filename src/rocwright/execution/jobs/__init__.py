"""One job server for all steps that run at once: how many processes there may be, by the memory that there
is.

The protocol is GNU make's: a token is a byte in a fifo, each client holds one more that it never took from
there.
"""
