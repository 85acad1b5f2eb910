"""The stages from bare machines to a cluster: one ordered list, and what runs, shows and undoes it."""
