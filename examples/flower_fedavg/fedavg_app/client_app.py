"""A site: the protocol of coterie, and one more thing it can do, training the network of its coterie."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

from coterie.flower import make_client_app, site_from_table

from .network import loss, trained

app = make_client_app()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the coterie's network for a few epochs on the site's own rows."""
    site = site_from_table(context)
    # Numbers, or the numbers of classes.
    X, y = site.learners.X, site.learners.loss.target(site.learners.y)
    n_classes = len(site.classes)
    weights = message.content["weights"].to_numpy_ndarrays()
    before = loss(weights, X, y, n_classes)
    epochs = int(context.run_config.get("local-epochs", 20))
    weights = trained(weights, X, y, epochs, n_classes)
    numbers = MetricRecord({"n_rows": len(y), "loss": before})
    return Message(RecordDict({"weights": ArrayRecord(weights), "numbers": numbers}), reply_to=message)
