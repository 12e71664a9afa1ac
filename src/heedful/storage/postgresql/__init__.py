"""Everything that only PostgreSQL understands: row-level security, partitions, search inside the database."""
