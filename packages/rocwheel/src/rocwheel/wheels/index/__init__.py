"""A folder of wheels as a package index: static pages, an object store, or a server of its own."""
