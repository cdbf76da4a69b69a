"""What is known of the field: models, loading, checks of a file; the facts are in its `data`."""
