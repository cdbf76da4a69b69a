"""A folder of wheels as a package index of static files, for any web server."""
