"""The same interface over HTTP: `heedful.connect`."""
