"""Leases on Redis: the lock is the plain key `lock:<name>`, the atomic steps are constant Lua scripts."""
