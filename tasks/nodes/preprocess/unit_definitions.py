"""The units that are known, in pint's language, and nothing beside them.

pint's own list knows bits as plain numbers (so that MB/s and 1/s would be alike), K as kelvin and k as a constant of
physics. Here information and share are dimensions of their own: a percentage never meets a plain number, since a tool
that leaves the sign out would be off by a hundred."""

DEFINITIONS = """
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ- = μ-
milli- = 1e-3 = m-
kilo- = 1e3 = k- = K-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
second = [time] = s = sec
minute = 60 * second = min
hour = 3600 * second = h = hr
day = 86400 * second = d
byte = [information] = B = Byte
bit = 0.125 * byte = b
percent = [share] = pct
hertz = 1 / second = Hz = iops = IOPS = tps = TPS = qps = rps = flops = FLOPS
byte_rate = byte / second = Bps
bit_rate = bit / second = bps
"""
COUNTED = """
operation op io event request req transaction query queries call message msg packet pkt loop iteration iter job cycle
switch switches fault error retry retries hit miss misses item count number scalar ratio bool boolean thread task
process processes connection sample page line key record row frame interrupt fork exec create file allocation bogo unit
cpu core score
"""  # plain numbers: one of each is 1
PLAIN = frozenset({"", "1", "#", "-", "none", "n/a", "x"})  # how a plain number may be marked
MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9}  # as words
SIGNS = {"%": "percent"}


def definitions() -> list[str]:
    """The lines that pint reads."""
    return [*DEFINITIONS.split("\n"), *(f"{word} = 1" for word in COUNTED.split())]
