"""The names of the changes that the paper tries, and one more; nothing heavy is imported here."""

from typing import Literal

Named = Literal["no_spare", "newest_sku", "steady_load", "even_load"]
