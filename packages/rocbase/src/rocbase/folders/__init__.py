"""Folders: listed without following a link, removed whole, made for a time."""
