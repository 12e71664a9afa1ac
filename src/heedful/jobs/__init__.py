"""Work that is done later, by this process or another: queues, workers, and what they do."""
