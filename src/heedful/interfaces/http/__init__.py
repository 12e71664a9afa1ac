"""The loop over HTTP: `heedful serve`."""
