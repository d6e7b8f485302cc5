"""The kinds of machine that vertices run on (SKUs), and how a token becomes CPU time there."""

from pydantic import Field

from tasks.params import Params

PERIOD_US = 10_000
TOKEN_US = 1_000  # a tenth of a core: one of ten milliseconds, and the least that the kernel allows
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
TOKENS_OF_A_CORE = 10  # a vertex has one thread


class Sku(Params):
    """One kind of machine: how many tokens it has, how much each is worth, and its memory and disk."""

    name: str = Field(pattern=NAME, max_length=40, description="Name, such as gen5: letters, digits, - and _")
    tokens: int = Field(ge=1, le=10_000, description="Tokens that can be promised, each a tenth of a core")
    speed: float = Field(1.0, ge=0.01, le=1, description="CPU time of a token, ratio to that of the newest kind")
    memory_ratio: float = Field(1.0, gt=0, le=1, description="Memory that a vertex gets, ratio to what its job asks")
    read_mb_per_s: float = Field(100, gt=0, le=100_000, description="How fast its disk may be read, in MB/s")

    @property
    def period_us(self) -> int:
        """Period of the quota of a vertex: longer where a token is worth less."""
        return round(PERIOD_US / self.speed)

    @property
    def cores(self) -> float:
        """What all its tokens are worth together, in cores."""
        return self.tokens * self.speed / TOKENS_OF_A_CORE

    def token_s(self, tokens: float, duration_s: float) -> float:
        """CPU seconds that so many tokens promise in so many seconds."""
        return tokens * self.speed * duration_s / TOKENS_OF_A_CORE
