"""Records in users' own tables. `open_table(target, plan, limit) -> RecordTable` opens them, see base.py."""
