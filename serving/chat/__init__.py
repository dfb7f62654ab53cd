"""The client of model servers: one pool of endpoints, one way to ask, one layer that sends again."""
