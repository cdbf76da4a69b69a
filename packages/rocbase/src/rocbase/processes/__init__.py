"""Programs run, ended and told apart; the set-up of a process of our own."""
