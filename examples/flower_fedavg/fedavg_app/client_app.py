"""A site: the protocol of coterie, and one more thing it can do, training the network of its coterie."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

from coterie.flower import make_client_app, party_from_table

from .network import loss, trained

app = make_client_app()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train the coterie's network for a few epochs on the site's own rows."""
    learners = party_from_table(context).learners
    weights = message.content["weights"].to_numpy_ndarrays()
    before = loss(weights, learners.X, learners.scalar_y)
    epochs = int(context.run_config.get("local-epochs", 20))
    weights = trained(weights, learners.X, learners.scalar_y, epochs)
    numbers = MetricRecord({"n_rows": len(learners.y), "loss": before})
    return Message(RecordDict({"weights": ArrayRecord(weights), "numbers": numbers}), reply_to=message)
