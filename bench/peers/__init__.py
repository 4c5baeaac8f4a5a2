"""Tickoff's records beside Python's job queues, each on its own broker, at its best documented settings.

Every peer is a program of its own: `program.py` runs the part of its module that lists work, the command
in `roll.py` works it. What they do is counted from outside.
"""
