"""A build beside its source. In: what the source says, what the libraries hold. Out: ``AuditResult``."""
