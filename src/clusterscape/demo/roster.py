"""Who works on the pretend cluster: projects, their users, what they call their experiments, and where they run. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass

from clusterscape.demo.hardware import LARGE, SMALL, V100


@dataclass(frozen=True, slots=True)
class Project:
    """``weights`` says how much of each partition's work is this project's."""

    name: str
    users: tuple[str, ...]
    experiments: tuple[str, ...]
    weights: Mapping[str, float]


PROJECTS: tuple[Project, ...] = (
    Project(
        "nlp-core",
        ("lchen", "mweber", "osantos", "tkimura", "dnowak"),
        ("llm-7b-pretrain", "llm-7b-sft", "long-context", "tokenizer-ablation", "reward-model"),
        {SMALL: 0.08, LARGE: 0.38, V100: 0.02},
    ),
    Project(
        "rec-sys",
        ("apatel", "jlarsen", "ysato"),
        ("two-tower", "ranker-dlrm", "session-bert", "embedding-sweep"),
        {SMALL: 0.05, LARGE: 0.25, V100: 0.05},
    ),
    Project(
        "multimodal",
        ("hrossi", "kdubois", "fmensah"),
        ("clip-l14", "video-caption", "vlm-instruct", "audio-text"),
        {SMALL: 0.06, LARGE: 0.25, V100: 0.0},
    ),
    Project(
        "speech",
        ("ejansen", "rkapoor", "nberg"),
        ("asr-conformer", "tts-vocoder", "wakeword"),
        {SMALL: 0.24, LARGE: 0.04, V100: 0.24},
    ),
    Project(
        "vision",
        ("sgarcia", "pnovak", "whuang", "cmoreau"),
        ("det-swin", "seg-mask2former", "depth-vit", "ssl-dino"),
        {SMALL: 0.25, LARGE: 0.04, V100: 0.17},
    ),
    Project(
        "search",
        ("bokafor", "imeyer", "vpopescu"),
        ("dense-retrieval", "query-rewrite", "reranker"),
        {SMALL: 0.24, LARGE: 0.02, V100: 0.06},
    ),
    Project(
        "robotics",
        ("gtanaka", "lfischer"),
        ("sim2real", "grasp-policy", "world-model"),
        {SMALL: 0.06, LARGE: 0.02, V100: 0.08},
    ),
    Project(
        "students",
        ("zkowalski", "amartin", "quinn", "rsilva"),
        ("thesis-gnn", "course-hw4", "nas-search", "diffusion-toy"),
        {SMALL: 0.02, LARGE: 0.0, V100: 0.38},
    ),
)

SESSION_NAMES = ("jupyter", "interactive", "vscode-tunnel", "bash")
ARRAY_NAMES = ("sweep", "hpo", "eval-ckpts", "seeds")
