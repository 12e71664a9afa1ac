"""The least that a server of this kind does: a bare FastAPI route that embeds the query, and nothing else."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from heedful.providers.configured import embedder_from


class Asked(BaseModel):
    """What is asked."""

    query: str


def create() -> FastAPI:
    """The application."""
    model = embedder_from("bundled")
    app = FastAPI()

    @app.post("/embed")
    def embed(asked: Asked) -> dict[str, int]:
        return {"dimensions": len(model.embed([asked.query])[0])}

    return app


if __name__ == "__main__":
    uvicorn.run(create(), port=int(sys.argv[1]), log_level="warning", access_log=False)
