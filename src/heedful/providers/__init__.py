"""Models that Heedful calls: embedders and language models."""
