"""Alerts: what is worth telling somebody at once, delivered at least once."""

from heedful.notifications.channels import Channel
from heedful.notifications.mail import Email
from heedful.notifications.slack import Slack
from heedful.notifications.sns import Sns
from heedful.notifications.webhook import Webhook, verify

__all__ = ["Channel", "Email", "Slack", "Sns", "Webhook", "verify"]
