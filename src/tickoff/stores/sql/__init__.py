"""Leases in SQLite, PostgreSQL, MySQL or MariaDB: one implementation over SQLAlchemy Core."""
