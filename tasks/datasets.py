"""Public reference data sets: what they are, where their home is, and fetching those whose file is pinned by a hash."""

from dataclasses import dataclass
from pathlib import Path

from tasks.errors import BadInput, NotFound, WhorlError, report_progress

RECORDED = Path(__file__).parents[1] / "data" / "recorded"  # by whorl's own recorders: a folder for each word
TIMEOUT_S = 30.0
BLOCK_BYTES = 256 * 1024


class Unreachable(WhorlError):
    """The public home of a data set does not give the file."""

    exit_code = 9


@dataclass(frozen=True)
class DataSet:
    """A public data set, not part of whorl.

    path: what to find below the datasets folder. home: where it comes from, with commit where there is one.
    url, sha256: the one public file that is the data set; empty where there is none, and `unpinned` says why."""

    name: str
    path: str
    title: str
    rows: str
    licence: str
    home: str
    words: str
    url: str = ""
    sha256: str = ""
    unpinned: str = ""

    def is_in(self, folder: Path | None) -> bool:
        """Whether the folder has it."""
        return folder is not None and (folder / self.path).exists()


SELECTION = "the folder holds a selection of its files"
COPIED = "no hash of the public file was ever taken"
DATA_SETS = (
    DataSet(
        name="swf",
        path="swf/NASA-iPSC-1993-3.1-cln.swf.gz",
        title="NASA iPSC/860 job log of 1993 in Standard Workload Format",
        rows="18,239",
        licence="free to use with credit to Bill Nitzberg and the Parallel Workloads Archive",
        home="https://www.cs.huji.ac.il/labs/parallel/workload/l_nasa_ipsc/",
        words="jobs",
        url="https://www.cs.huji.ac.il/labs/parallel/workload/l_nasa_ipsc/NASA-iPSC-1993-3.1-cln.swf.gz",
        sha256="5589ae9b2fb78e3bf92de097497cf33a91607de1ad54563e43533f7827597f29",
    ),
    DataSet(
        name="slurm",
        path="slurm/phillips_sacct.log",
        title="anonymised sacct rows of a Slurm cluster, without a header line",
        rows="4,285",
        licence="LGPL-3.0",
        home="https://github.com/ubccr/xdmod",
        words="jobs",
        unpinned=COPIED,
    ),
    DataSet(
        name="cosmos",
        path="cosmos",
        title="moments of 15 attributes of recurring jobs on Microsoft Cosmos, three traces",
        rows="5,561 jobs",
        licence="MIT",
        home="https://github.com/microsoft/Peregrine (82c15a8e)",
        words="jobs",
        unpinned=SELECTION,
    ),
    DataSet(
        name="c3o",
        path="c3o",
        title="runtimes of five Spark jobs on AWS clusters, five repeats each",
        rows="930",
        licence="none stated",
        home="https://github.com/dos-group/c3o-experiments (ccdbbaa4)",
        words="advice, jobs",
        unpinned=SELECTION,
    ),
    DataSet(
        name="azure-vm-noise",
        path="azure-vm-noise/eastus.parquet",
        title="40 benchmarks on Azure machines, 2023-05 to 2024-06",
        rows="1,720,049",
        licence="CC-BY-4.0",
        home="https://github.com/Azure/AzurePublicDataset (vm-noise-data)",
        words="nodes",
        unpinned="the file is one region of several public tables, rewritten as Parquet",
    ),
    DataSet(
        name="sparecores",
        path="sparecores",
        title="raw output of benchmarks on cloud machines, and scores of 3,613 types",
        rows="13 types; 3,613",
        licence="CC-BY-SA-4.0",
        home="https://github.com/SpareCores/sc-inspector-data (804d3c71)",
        words="nodes, advice",
        unpinned=SELECTION,
    ),
    DataSet(
        name="scout",
        path="scout/runs.csv",
        title="Spark and Hadoop jobs on 69 cluster configurations",
        rows="828",
        licence="MIT",
        home="https://github.com/oxhead/scout (kept in marialcasimiro/Lynceus-ICDCS c5f83fc8)",
        words="advice",
        unpinned="the file joins many small public ones",
    ),
    DataSet(
        name="lotaru",
        path="lotaru",
        title="task runtimes of five nf-core workflows on seven machines",
        rows="many files",
        licence="none stated",
        home="https://github.com/CRC-FONDA/Lotaru (2b07b184)",
        words="advice",
        unpinned=SELECTION,
    ),
    DataSet(
        name="cloudsuite",
        path="cloudsuite",
        title="counters every 2 s of 8 CloudSuite services on two machines",
        rows="16 files",
        licence="Apache-2.0",
        home="https://github.com/maurocanuto/power-modelling (563553a8)",
        words="workloads",
        unpinned=SELECTION,
    ),
    DataSet(
        name="tcpd",
        path="tcpd",
        title="series of the Turing Change Point Dataset with five annotators each",
        rows="14 series",
        licence="MIT, each series under its own terms",
        home="https://github.com/alan-turing-institute/TCPD (83b3039b)",
        words="workloads",
        unpinned=SELECTION,
    ),
)


def find_data_set(name: str) -> DataSet:
    """The data set of that name. Raises NotFound, naming those that there are."""
    known = {data_set.name: data_set for data_set in DATA_SETS}
    if name not in known:
        raise NotFound(f"data set {name!r}: there is none of that name; there are {', '.join(known)}")
    return known[name]


def fetch(data_set: DataSet, folder: Path) -> Path:
    """Download a data set into the folder, check its hash, and return its path; a file that is right is left alone.

    Raises NotFound if no file of it is pinned, Unreachable, and BadInput if the hash is another one; neither leaves
    anything behind."""
    if not data_set.sha256:
        raise NotFound(
            f"data set {data_set.name!r} is not fetched: {data_set.unpinned}, so nothing could tell that a download is "
            f"what was measured; take it from {data_set.home} and put it at {folder / data_set.path}"
        )
    import pooch

    pooch.get_logger().setLevel("ERROR")
    target = folder / data_set.path
    try:
        pooch.retrieve(
            data_set.url, f"sha256:{data_set.sha256}", fname=target.name, path=target.parent, downloader=_download
        )
    except ValueError as error:  # pooch has removed what it downloaded
        raise BadInput(
            data_set.url,
            "the file is not the one that whorl was measured on",
            f"sha256 {data_set.sha256[:12]}…",
            "nothing was kept; try again, and if it has changed for good, say so in an issue",
        ) from error
    return target


def _download(url: str, output_file: str, _pooch: object) -> None:
    """Write the bytes as they are sent: a server that labels a .gz file as gzip encoding must not have it unpacked."""
    import httpx

    try:
        with (
            Path(output_file).open("wb") as file,
            httpx.stream("GET", url, follow_redirects=True, timeout=TIMEOUT_S) as answer,
        ):
            answer.raise_for_status()
            total = int(answer.headers.get("content-length", 0)) or None
            for block in answer.iter_raw(BLOCK_BYTES):
                file.write(block)
                report_progress(f"fetching {url}", file.tell(), total)
    except httpx.HTTPStatusError as error:
        code = error.response.status_code
        raise Unreachable(f"{url}: the server answers {code}; expected the file; try again later") from error
    except httpx.HTTPError as error:
        problem = str(error) or type(error).__name__
        raise Unreachable(f"{url}: cannot be fetched ({problem}); check the network or a proxy") from error
