"""The loop: partitions taken over and given up, decisions committed, attempts carried out."""
