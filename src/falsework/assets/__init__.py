"""Assets: everything the machines need, made from the site by pure functions.

`graph` keeps them: what each is made from, what a person changed, what expires. The other modules say what
they are. `catalogue` puts them together and is where the other rooms start.
"""
