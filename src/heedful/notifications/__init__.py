"""Alerts: what is worth telling somebody at once, delivered at least once."""

from heedful.notifications.channels import Channel, Email, Slack, Sns, Webhook, verify

__all__ = ["Channel", "Email", "Slack", "Sns", "Webhook", "verify"]
