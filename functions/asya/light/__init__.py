"""Light actors: their functions run Python handlers of users."""
