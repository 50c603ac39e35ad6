"""How long workers compute, alone and in steps that they do together."""
