"""One module per check of `opskit doctor`, named as the command's: `check(look) -> Outcome` is its quick form."""
