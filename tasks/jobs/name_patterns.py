"""The patterns by which names.py finds dates, ids, paths and numbers in a text of names, one name a line.

None of them crosses a line end. They are case-sensitive where they run over every name, which is much faster."""

import re

PROGRAMS = "sh|bash|py|pl|r|jl|jar|exe|sql|hql|ipynb|nf|x|class|scala|bat|ps1"
DATA_FILES = (
    "parquet|csv|tsv|jsonl?|ndjson|avro|orc|txt|log|gz|zst|bz2|xz|zip|tar|xml|xlsx?|bam|sam|cram|fastq|fq|vcf|bed"
    "|h5|hdf5|nc|npy|npz|pkl|feather|arrow|db|sqlite|duckdb|dat|bin|out|in|png|jpe?g|tiff?|pdf|ya?ml|conf|cfg|ini"
)
PATHS = re.compile(  # s3://bucket/in, /data/in, ~/x, C:\in, in/part-7.csv, and words that slashes join
    r"""(?<![^\s=,;:"'()<>\[\]|{}])(?P<head>[^\s=,;:"'()<>\[\]|{}/\\]*+(?::(?=[/\\]))?)[/\\]+"""
    r"""(?P<rest>[^\s,;"'()<>\[\]|]*+)"""
)
PROGRAM = re.compile(rf"[/\\]([^/\\]+\.(?:{PROGRAMS})|(?<=bin[/\\])[^/\\]+)\Z", re.IGNORECASE)
DATA_FILE = re.compile(rf"\.(?:{DATA_FILES})\Z", re.IGNORECASE)

YEAR, MONTH, DAY = r"(?:199[0-9]|20[0-4][0-9])", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12][0-9]|3[01])"
MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:[ ]?[+-][0-9]{2}:?[0-9]{2}|[zZ])?"
AFTER_DATE = rf"(?:[tT_ -]?{CLOCK}|[tT]?[0-9]{{2,9}}[zZ]?)?(?![0-9])"
TIMES = re.compile(rf"(?<![0-9:]){CLOCK}(?![0-9:])")
YEAR_FIRST = re.compile(
    rf"""{YEAR}(?<![0-9]{{5}})(?:
        ([-_./])[0-9]{{1,2}}\1[0-9]{{1,2}}{AFTER_DATE}
      | {MONTH}{DAY}{AFTER_DATE}
      | (?<![A-Za-z][0-9]{{4}})[-_.]?(?:[wW][0-9]{{1,2}}|[qQ][1-4]|{MONTH})(?![0-9A-Za-z])
    )""",
    re.VERBOSE,
)
YEAR_ALONE = re.compile(rf"{YEAR}(?<![0-9]{{5}})(?![0-9])")
YEAR_LATER = re.compile(
    rf"""(?<![0-9])(?:
        [0-9]{{1,2}}([-./])[0-9]{{1,2}}\1{YEAR}{AFTER_DATE}
      | {YEAR}[-_. ]?{MONTH_NAME}(?:[-_. ]?[0-9]{{1,2}})?(?![0-9a-z])
      | [0-9]{{1,2}}[-_. ]?{MONTH_NAME}[-_. ]?{YEAR}(?![0-9])
      | (?<![a-z])(?:
            {MONTH_NAME}[-_. ]?[0-9]{{1,2}}(?:,[ ]|[-_., ]){YEAR} | {MONTH_NAME}[-_. ]?{YEAR} | q[1-4][-_. ]?{YEAR}
        )(?![0-9])
    )""",
    re.VERBOSE | re.IGNORECASE,
)

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
UUIDS = re.compile(rf"(?<![0-9A-Za-z]){UUID}(?![0-9A-Za-z])")
PODS = re.compile(r"\{id\}-[b-df-hj-np-tv-z2456789]{5}(?![0-9A-Za-z])")  # what Kubernetes appends
IDS = re.compile(r"(?<![0-9A-Za-z])[0-9]{7,}(?![0-9A-Za-z])")
LONG_NUMBERS = re.compile(r"(?<![0-9A-Za-z])[0-9]{4,6}(?![0-9A-Za-z])")
WORDS = re.compile(r"(?<![A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*(?:(?:\.[0-9]{1,3})+(?![0-9A-Za-z]))?")
ALPHANUMERIC = re.compile(r"[0-9A-Za-z]+")
PAIRS = re.compile(r"([A-Za-z]*)([0-9]+)")
LAST_WORD = re.compile(r"[A-Za-z]+\Z")

HEX_WORDS = r"(?:ab|abc|ace|add|bad|bead|bed|cab|cafe|cd|db|dead|dec|decade|deed|ec|facade|face|fade|feb|feed)"
SHORT_HEX = re.compile(rf"(?!{HEX_WORDS}[0-9]+\Z)(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,15}}", re.IGNORECASE)
LONG_HEX = re.compile(r"(?:0x)?[0-9a-f]{16,}", re.IGNORECASE)

APP_NUMBER = r"app [0-9]+"  # what the reader of Standard Workload Format calls an executable
WHOLE = re.compile(rf"[0-9a-fA-F]{{12,}}|{UUID}|{APP_NUMBER}")  # names that stay as they are
MAY_CHANGE = re.compile(r"[0-9/\\]|\}.*\{")
NUMBERS = ("date", "time", "id", "n", "hash")
BEHIND_ONE = "|".join(rf"(?<=\{{{name}\}})" for name in NUMBERS)
REPEATED = re.compile(rf"(?<=\}})(?:{BEHIND_ONE})[-_.:/+#]*\{{(?:{'|'.join(NUMBERS)})\}}")  # all but the first
REPEATED_PATHS = re.compile(r"\{path\}(?:[ ,:;]+\{path\})+")
