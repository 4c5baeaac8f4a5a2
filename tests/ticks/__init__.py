"""Jobs on schedules, in virtual time and in real processes."""
