"""The dashboard: what people say of answers, and what can be done about it, as pages for a browser."""
