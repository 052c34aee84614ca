"""An example: coteries first, then federated averaging inside each of them."""
