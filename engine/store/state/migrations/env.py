"""Run by Alembic: apply migrations on the connection that the caller opened."""

from alembic import context

from tailburn.engine.store.state.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters a column by making the table anew
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
