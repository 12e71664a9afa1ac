"""What the help desk of a shop knows, with rules that changed, and what is right today."""

from __future__ import annotations

FACTS = [
    "You can return a parcel within 14 days.",
    "You can return a parcel within 30 days.",
    "Refunds are paid by cheque.",
    "Refunds are paid to your card.",
    "Support answers by phone.",
    "Support answers in the chat.",
    "A parcel to another country costs 12 euros.",
    "A parcel to another country costs 9 euros.",
    "A gift card is valid for one year.",
    "A gift card is valid for three years.",
]
"""The old rules, each before the new one."""

RIGHT = {
    "Within how many days can I return a parcel?": "30 days",
    "How are refunds paid?": "to your card",
    "How does support answer?": "in the chat",
    "What does a parcel to another country cost?": "9 euros",
    "How long is a gift card valid?": "three years",
}
"""Questions, and what a right answer says."""
