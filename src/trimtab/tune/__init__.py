"""`trimtab tune`: study.toml, the loop that runs a command, and the files that `trimtab init` writes."""
