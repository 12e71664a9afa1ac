#!/bin/sh
# Run once, when the database is made: a role that owns its database and is not a superuser, so that row-level security holds.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres <<'SQL'
CREATE ROLE heedful LOGIN PASSWORD :'password';
CREATE DATABASE heedful OWNER heedful;
\connect heedful
CREATE EXTENSION vector SCHEMA public;
SQL
