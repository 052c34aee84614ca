"""The coordinator. It writes the conclusion to the run's ``output``, where one is given."""

from coterie.federated.flower import make_server_app

app = make_server_app()
