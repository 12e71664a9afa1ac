"""A LangGraph agent that learns from thumbs: memories before the model, the answer stored, and the thread kept.

Run it with `python examples/langgraph_agent.py`. It needs the extra `langchain`, and no key.
"""

from __future__ import annotations

import re
from typing import Any

from langchain.agents import create_agent  # Of the extra `langchain`; in a clone: pip install ".[langchain]"
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

import heedful
from heedful.integrations.langchain import HeedfulMiddleware

FACTS = ["Parcels can be returned within 14 days.", "Since May, parcels can be returned within 30 days."]


class FirstMemory(GenericFakeChatModel):
    """Stands in for a chat model by repeating the first memory of its prompt."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        found = re.search(r'^\[1\] "(.*)"$', messages[0].text, re.MULTILINE)
        self.messages = iter([AIMessage(f"{found[1]} [1]" if found else "I don't know.")])
        return super()._generate(messages, *args, **kwargs)


model = FirstMemory(messages=iter([]))  # Yours: model = init_chat_model("…")


def main() -> list[str]:
    """Ada asks and gives a thumb down; Bo asks in other words; then Ada takes her thumb back."""
    with heedful.open(":memory:") as memory:
        memory.remember(FACTS)
        agent = create_agent(model, tools=[], middleware=[HeedfulMiddleware(memory)], checkpointer=InMemorySaver())

        def ask(question: str, thread: str, run_id: str) -> str:
            # The id of the run becomes the id of the answer.
            config: Any = {"configurable": {"thread_id": thread}, "metadata": {"run_id": run_id}}
            return str(agent.invoke({"messages": [{"role": "user", "content": question}]}, config)["messages"][-1].text)

        answers = [ask("How long do I have to return a parcel?", "ada", "run-1")]
        memory.sessions.rate("run-1", "down", author="ada")
        memory.improve()  # Happens by itself within seconds. This line waits for it.
        answers.append(ask("Within how many days can I return a parcel?", "bo", "run-2"))
        memory.sessions.delete_feedback("ada", "run-1", author="ada")
        answers.append(ask("Until when can a parcel be returned?", "cy", "run-3"))
    return answers


if __name__ == "__main__":
    for title, answer in zip(["at first", "after a thumb down", "after undo"], main(), strict=True):
        print(f"{title}: {answer}")
