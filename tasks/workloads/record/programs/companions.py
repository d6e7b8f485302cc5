"""What runs only under conditions: workloads that are never learned, loads that disturb, and nothing."""

import random
import subprocess

from tasks.record.processes import LOOPBACK, free_port
from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import LONGEST_S, Input, Need, Program, Role, spawn_loop, spawn_python

FFMPEG, JAVA, SORT = Need(("ffmpeg",), "ffmpeg"), Need(("java",), "default-jdk-headless"), Need(("sort",), "coreutils")
OPENSSL, STRESS, IPERF = Need(("openssl",), "openssl"), Need(("stress-ng",), "stress-ng"), Need(("iperf3",), "iperf3")
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


class Sqlite(Program):
    """A file of one table; each transaction is written through to the disk."""

    name, title = "sqlite", "SQLite: an embedded database in Python"
    role: Role = "unlearned"
    needs = (Need(("sqlite3",), "python3", "module"),)
    inputs = (
        Input("orders", {"mode": "orders", "rows": 100_000}, "small transactions that insert and update, with fsync"),
        Input("reports", {"mode": "reports", "rows": 400_000}, "groups and joins over 400,000 rows"),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Fill the table and ask."""
        return spawn_python(place, "sqlite", input.options)


class Encoding(Program):
    """A moving test picture, encoded and thrown away."""

    name, title = "ffmpeg", "video encoding with ffmpeg"
    role: Role = "unlearned"
    needs = (FFMPEG,)
    inputs = (
        Input("h264", {"codec": "libx264", "size": "640x360", "live": 0}, "H.264, 640 x 360, as fast as it can"),
        Input("live", {"codec": "mpeg4", "size": "960x540", "live": 1}, "MPEG-4, 960 x 540, 25 pictures a second"),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the encoder."""
        source = ["-f", "lavfi", "-i", f"testsrc2=size={input.options['size']}:rate=25"]
        live = ["-re"] if input.options["live"] else []
        command = [FFMPEG.path(), "-nostdin", "-loglevel", "error", *live, *source, "-threads", "2"]
        return place.spawn([*command, "-c:v", str(input.options["codec"]), "-f", "null", "-"], name="load")


class LinearAlgebra(Program):
    """Matrices in numpy, by the BLAS that it came with."""

    name, title = "matrices", "a numerical kernel: products and factors of matrices in numpy"
    role: Role = "unlearned"
    kin = "bayes"
    needs = (Need(("numpy",), "numpy", "module"),)
    inputs = (
        Input("products", {"mode": "products", "size": 900, "threads": 2}, "products of 900 x 900, two threads"),
        Input("factors", {"mode": "factors", "size": 250, "threads": 1}, "singular values of 250 x 250, one thread"),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the kernel."""
        return spawn_python(place, "matrices", input.options, threads=int(input.options["threads"]))


class Jvm(Program):
    """Objects that come and go in maps: the garbage collector has work."""

    name, title = "jvm", "a Java program over maps"
    role: Role = "unlearned"
    needs = (JAVA, Need(("/usr/bin/javac",), "default-jdk-headless", "file"))
    inputs = (
        Input("cache", {"kept": 200_000, "bytes": 400, "pause": 0}, "200,000 objects of 400 B, without a pause"),
        Input("paced", {"kept": 20_000, "bytes": 4_000, "pause": 5}, "20,000 objects of 4 kB, 5 ms between batches"),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the program from its source."""
        source = place.write("Load.java", JAVA_SOURCE)
        told = [str(input.options[key]) for key in ("kept", "bytes", "pause")]
        return place.spawn([JAVA.path(), "-Xmx256m", str(source), *told, str(place.seed)], name="load")


class Sorting(Program):
    """Lines of numbers."""

    name, title, kin = "sort", "sorting with GNU sort", "compress"
    role: Role = "unlearned"
    needs = (SORT,)
    inputs = (
        Input("memory", {"flags": "-n --parallel=2 -S 200M"}, "1.5 million numbers in memory, two threads"),
        Input("disk", {"flags": "--parallel=1 -S 4M"}, "1.5 million lines in pieces of 4 MB, merged on disk"),
    )

    def fill(self, place: Place) -> None:
        """Write the numbers."""
        dice = random.Random(NUMBERS_SEED)
        place.write("numbers", "\n".join(str(dice.randrange(1 << 40)) for _ in range(NUMBERS)))

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Sort them again and again."""
        return spawn_loop(place, f"{SORT.path()} {input.options['flags']} -T . numbers -o sorted")


class Encryption(Program):
    """The speed test of openssl, again and again."""

    name, title = "openssl", "encryption with openssl"
    role: Role = "unlearned"
    needs = (OPENSSL,)
    inputs = (
        Input("cipher", {"flags": "-multi 2 -bytes 16384 -evp aes-256-cbc"}, "AES of blocks of 16 KiB, two processes"),
        Input("sign", {"flags": "rsa2048"}, "RSA signatures, one process"),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start it."""
        return spawn_loop(place, f"{OPENSSL.path()} speed -seconds 5 {input.options['flags']} > /dev/null 2>&1")


class Idle(Program):
    """A group in which nothing happens."""

    name, title, needs = "idle", "nothing", ()
    role: Role = "idle"
    inputs = (Input("idle", {}, "a process that sleeps"),)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":  # noqa: ARG002
        """Sleep."""
        return place.spawn(["/bin/sleep", str(LONGEST_S)], name="load")


class StressLoad(Program):
    """Work of stress-ng that is nobody's: of its flags, {level} is the input's."""

    needs = (STRESS,)
    role: Role = "load"

    def __init__(self, kind: str, flags: str, levels: tuple[str, ...]) -> None:
        self.name, self.title, self.flags = f"load-{kind}", f"load on the {kind}", flags
        self.inputs = tuple(Input(level, {"level": level}, f"{kind} at {level}") for level in levels)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start stress-ng."""
        flags = self.flags.format(level=input.options["level"]).split()
        return place.spawn([STRESS.path(), "--temp-path", str(place.folder), *flags], name="load")


class NetworkLoad(Program):
    """iperf3 over the loopback device, at a bitrate."""

    name, title, needs = "load-network", "load on the network", (IPERF,)
    role: Role = "load"
    inputs = (Input("1g", {"rate": "1G"}, "1 Gbit/s"),)

    def start(self, place: Place) -> None:
        """Start the server."""
        port = free_port()
        self.serve(place, "iperf3", [IPERF.path(), "-s", "-B", LOOPBACK, "-p", str(port)], port)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the client."""
        flags = ["-p", str(place.facts["port"]), "-b", str(input.options["rate"]), "-t", str(LONGEST_S)]
        return place.spawn([IPERF.path(), "-c", LOOPBACK, *flags], name="load")


COMPANIONS_LISTED: tuple[Program, ...] = (
    Sqlite(),
    Encoding(),
    LinearAlgebra(),
    Jvm(),
    Sorting(),
    Encryption(),
    Idle(),
    StressLoad("cpu", "--cpu 0 --cpu-load {level}", ("10", "30", "60")),
    StressLoad("memory", "--vm 1 --vm-bytes {level} --vm-keep --vm-hang 2", ("2g",)),
    StressLoad("disk", "--hdd {level} --hdd-bytes 128m --hdd-opts direct,wr-rnd,rd-rnd", ("1",)),
    NetworkLoad(),
)
