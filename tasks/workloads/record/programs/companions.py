"""What runs only under conditions: workloads that are never learned, loads that disturb, and nothing."""

import random

from tasks.workloads.record.programs.program import (
    Client,
    Command,
    Inputs,
    Need,
    Options,
    Program,
    ProgramPlace,
    Role,
    inputs_of,
    spawn_loop,
)

FFMPEG, JAVA, SORT = Need(("ffmpeg",), "ffmpeg"), Need(("java",), "default-jdk-headless"), Need(("sort",), "coreutils")
OPENSSL, STRESS, IPERF = Need(("openssl",), "openssl"), Need(("stress-ng",), "stress-ng"), Need(("iperf3",), "iperf3")
JAVAC, SLEEP = Need(("/usr/bin/javac",), "default-jdk-headless", "file"), Need(("sleep",), "coreutils")
NUMBERS_SEED, NUMBERS = 3, 1_500_000
JAVA_SOURCE = """
import java.util.*;
public class Load {
    public static void main(String[] told) {
        int kept = Integer.parseInt(told[0]), bytes = Integer.parseInt(told[1]), pause = Integer.parseInt(told[2]);
        Random dice = new Random(Long.parseLong(told[3]));
        HashMap<Integer, byte[]> orders = new HashMap<>();
        TreeMap<String, Integer> index = new TreeMap<>();
        while (true) {
            for (int n = 0; n < 2000; n++) {
                int key = dice.nextInt(kept);
                orders.put(key, new byte[bytes]);
                index.merge("order-" + key % 5000, 1, Integer::sum);
            }
            index.values().stream().mapToInt(Integer::intValue).sum();
            if (pause > 0) try { Thread.sleep(pause); } catch (InterruptedException ended) { return; }
        }
    }
}
"""


class Jvm(Command):
    """A Java program over maps: objects come and go, the garbage collector has work."""

    def fill(self, place: ProgramPlace) -> None:
        """Write the source."""
        place.write("Load.java", JAVA_SOURCE)


class Repeated(Program):
    """A command of a tool, again and again. flags: the input's."""

    role: Role = "unlearned"

    def __init__(self, name: str, need: Need, command: str, **flags: str) -> None:
        self.name, self.needs, self.command = name, (need,), command
        self.inputs = {input: {"flags": text} for input, text in flags.items()}

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start the loop."""
        return spawn_loop(place, f"{self.needs[0].path()} {self.command.format(**options)}")


class Sorting(Repeated):
    """Lines of numbers."""

    def fill(self, place: ProgramPlace) -> None:
        """Write the numbers."""
        dice = random.Random(NUMBERS_SEED)
        place.write("numbers", "\n".join(str(dice.randrange(1 << 40)) for _ in range(NUMBERS)))


def _stress(kind: str, flags: str, *levels: str) -> Command:
    """Work of stress-ng that is nobody's."""
    inputs: Inputs = {level: {"level": level} for level in levels}
    return Command(f"load-{kind}", STRESS, f"--temp-path {{folder}} {flags}", inputs, role="load")


JVM = Jvm(
    "jvm", JAVA, "-Xmx256m {folder}/Load.java {kept} {bytes} {pause} {seed}",
    inputs_of("kept bytes pause", cache=(200_000, 400, 0), paced=(20_000, 4_000, 5)), role="unlearned",
)  # fmt: skip
JVM.needs += (JAVAC,)
COMPANIONS_LISTED: tuple[Program, ...] = (
    Command(  # a file of one table; transactions are written through to the disk, or groups and joins over it
        "sqlite", Need(("sqlite3",), "python3", "module"), "",
        inputs_of("mode rows", orders=("orders", 100_000), reports=("reports", 400_000)), role="unlearned",
    ),
    Command(  # a moving test picture, encoded as fast as it can or 25 times a second, and thrown away
        "ffmpeg", FFMPEG,
        "-nostdin -loglevel error {live} -f lavfi -i testsrc2=size={size}:rate=25 -threads 2 -c:v {codec} -f null -",
        inputs_of("codec size live", h264=("libx264", "640x360", ""), live=("mpeg4", "960x540", "-re")),
        role="unlearned",
    ),
    Command(  # products or singular values of matrices in numpy, by the BLAS that it came with
        "matrices", Need(("numpy",), "numpy", "module"), "",
        inputs_of("mode size threads", products=("products", 900, 2), factors=("factors", 250, 1)), role="unlearned",
    ),
    JVM,
    Sorting(  # in memory with two threads, or in pieces of 4 MB that are merged on disk
        "sort", SORT, "{flags} -T . numbers -o sorted",
        memory="-n --parallel=2 -S 200M", disk="--parallel=1 -S 4M",
    ),
    Repeated(
        "openssl", OPENSSL, "speed -seconds 5 {flags} > /dev/null 2>&1",
        cipher="-multi 2 -bytes 16384 -evp aes-256-cbc", sign="rsa2048",
    ),
    Command("idle", SLEEP, "{longest}", {"idle": {}}, role="idle"),
    _stress("cpu", "--cpu 0 --cpu-load {level}", "10", "30", "60"),
    _stress("memory", "--vm 1 --vm-bytes {level} --vm-keep --vm-hang 2", "2g"),
    _stress("disk", "--hdd {level} --hdd-bytes 128m --hdd-opts direct,wr-rnd,rd-rnd", "1"),
    Command(  # over the loopback device, at a bitrate
        "load-network", IPERF, "-c {address} -p {port} -b {rate} -t {longest}", inputs_of("rate", **{"1g": ("1G",)}),
        role="load", server=IPERF, server_flags="-s -B {address} -p {port}",
    ),
)  # fmt: skip
