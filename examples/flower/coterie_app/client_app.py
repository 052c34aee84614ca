"""A site. It reads the table that its own node configuration names.

For rows from a database, or columns that need preparing, write a function from the context to a site:

    def load_site(context):
        X, y = ...
        return make_site(X, y, site=str(context.node_config["site"]))

    app = make_client_app(load_site)
"""

from coterie.flower import make_client_app

app = make_client_app()
