"""What alembic runs: on the connection that it is given, in that connection's transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=False)
with context.begin_transaction():
    context.run_migrations()
