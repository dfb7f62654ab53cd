"""What vLLM on this host is and can: its environment, its flags, the GPUs, the model's files, and the preflight."""
