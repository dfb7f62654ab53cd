"""What docmill knows of vision-language models: profiles, memory, plans, the flags of vLLM's server. Pure."""
