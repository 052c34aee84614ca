"""Our own candidates: scikit-learn's models, grown or fitted without what costs time on few rows."""
