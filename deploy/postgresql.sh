#!/bin/sh
# Run once, when the database is created: a role that owns its database and is not a superuser, so that row-level
# security holds. Its password is another than the superuser's, and nobody else may connect.
set -eu
if [ "$HEEDFUL_DATABASE_PASSWORD" = "$POSTGRES_PASSWORD" ]; then
  echo "HEEDFUL_DATABASE_PASSWORD must differ from POSTGRES_PASSWORD, the superuser's: set another in .env" >&2
  exit 1
fi
psql --set ON_ERROR_STOP=1 --username postgres <<'SQL'
\getenv password HEEDFUL_DATABASE_PASSWORD
CREATE ROLE heedful LOGIN PASSWORD :'password' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
CREATE DATABASE heedful OWNER heedful;
REVOKE ALL ON DATABASE heedful, postgres, template1 FROM PUBLIC;
\connect heedful
CREATE EXTENSION vector SCHEMA public;
SQL
