"""The Machine Config Server: on the bootstrap machine it serves files, on the masters what the API has."""
