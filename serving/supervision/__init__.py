"""The life of a model server: its process, its readiness, its watchdog, its sleep and its end."""
