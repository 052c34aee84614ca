"""A template: the protocol of coterie as an app of Flower."""
