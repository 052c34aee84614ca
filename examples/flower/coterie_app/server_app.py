"""The coordinator. It writes the conclusion to the run's ``output``, where one is given."""

from coterie.flower import make_server_app

app = make_server_app()
