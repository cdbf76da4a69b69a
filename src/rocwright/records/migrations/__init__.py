"""Steps from one version of the schema to the next. What is released is never changed."""
