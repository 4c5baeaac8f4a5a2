"""The four acts; each is a function of the stage and the show."""
