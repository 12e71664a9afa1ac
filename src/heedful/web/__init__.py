"""What everything that speaks HTTP shares: requests of other systems' clients, and errors as documents."""
