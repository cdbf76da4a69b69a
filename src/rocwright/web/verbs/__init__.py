"""The verbs that show the records: `serve`, `report`."""
