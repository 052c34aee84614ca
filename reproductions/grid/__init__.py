"""The electrical grid under attack: the last figure."""
