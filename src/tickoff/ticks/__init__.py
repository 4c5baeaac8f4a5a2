"""Jobs on schedules: which ticks are due, how they are won, run, and told of."""
