"""`trimtab tune`: study.toml, the loop that runs a command, and what `trimtab init` writes."""
