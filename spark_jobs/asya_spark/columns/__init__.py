"""The `payload` column of DataFrame jobs: its declared type, its values, and the JSON of results (`protocol §10.dataframe`)."""
