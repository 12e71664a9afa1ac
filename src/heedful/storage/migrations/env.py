"""Alembic's entry point: uses the connection it is handed."""

from alembic import context

from heedful.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
