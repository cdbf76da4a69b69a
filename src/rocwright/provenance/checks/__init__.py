"""Which checks of a recipe has an artifact passed? Those that run nothing are run here."""
