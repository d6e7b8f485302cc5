"""The base of every parameter model: frozen, closed, documented field by field."""

from pydantic import BaseModel, ConfigDict


class Params(BaseModel):
    """Parameters that cannot change after they are made; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
