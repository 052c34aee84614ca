"""Tables of the UCI archive: from a local folder, or downloaded once and verified."""
