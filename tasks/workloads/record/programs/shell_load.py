"""A load that is a shell loop of short commands: compilers and compressors."""

import signal
import subprocess

from tasks.workloads.record.programs.place import Place

# the loop waits in the background, so that SIGTERM is heard at once and takes the commands of the moment along
LOOP = """trap 'kill -KILL 0' TERM
while :; do
{body}
done &
wait $!
"""


def spawn_loop(place: Place, body: str) -> "subprocess.Popen[bytes]":
    """Repeat a piece of shell script, under the name `load`, until the place is stopped or a command fails."""
    return place.spawn(["/bin/sh", "-e", "-c", LOOP.format(body=body)], name="load", first_signal=signal.SIGTERM)
