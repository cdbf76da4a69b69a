"""Is a catalog right? Its recipes, its known issues and its tables, and its edits against upstream trees."""
