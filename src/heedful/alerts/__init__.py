"""Alerts: what is worth telling somebody at once, delivered at least once."""

from heedful.alerts.channels import Channel
from heedful.alerts.mail import Email
from heedful.alerts.signature import verify
from heedful.alerts.slack import Slack
from heedful.alerts.sns import Sns
from heedful.alerts.webhook import Webhook

__all__ = ["Channel", "Email", "Slack", "Sns", "Webhook", "verify"]
