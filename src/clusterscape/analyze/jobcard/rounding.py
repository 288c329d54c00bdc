"""Numbers as the users of jobstats and Slurm know them: their units, their decimals, and where they round or truncate."""

from clusterscape.model.durations import DAY_S

_BINARY_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_DECIMAL_UNITS = ("B", "KB", "MB", "GB", "TB")
_SLURM_UNITS = ("K", "M", "G", "T", "P", "E")


def format_clock(seconds: float) -> str:
    """``33:49`` as ``00:33:49``, a day and more as ``4-20:40:02``; fractions are truncated."""
    days, rest = divmod(int(seconds), DAY_S)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def format_bytes(size: float, *, is_limit: bool = False) -> str:
    """Powers of 1024 with one decimal: ``3.7GB``; a limit of whole gigabytes without: ``128GB``."""
    number, unit = _scale(float(size), 1024, _BINARY_UNITS)
    text = f"{number:.1f}{unit}"
    return text.replace(".0GB", "GB") if is_limit else text


def format_slurm_memory(size_bytes: int) -> str:
    """As ``ReqMem`` of sacct: in the largest unit that divides it, ``128G``, ``350M``; without a fraction."""
    number, unit = round(size_bytes / 1024), 0
    while number >= 1024 and number % 1024 == 0 and unit < len(_SLURM_UNITS) - 1:
        number, unit = number // 1024, unit + 1
    return f"{number}{_SLURM_UNITS[unit]}"


def format_requested_memory(size_bytes: int, cores: int | None) -> str:
    """The request and its share of each core: ``128GB (10.7GB per CPU-core)``, by powers of 1000 of what sacct prints."""
    text = format_slurm_memory(size_bytes)
    number, unit = int(text[:-1]), text[-1]
    total = text
    for small, large in (("K", "M"), ("M", "G"), ("G", "T")):
        if total.endswith(f"000{small}"):
            total = f"{total.removesuffix(f'000{small}')}{large}"
    if cores is None or cores <= 1:
        return f"{total}B"
    per_core, name = _scale(number * 1000 ** (_SLURM_UNITS.index(unit) + 1) / cores, 1000, _DECIMAL_UNITS)
    return f"{total}B ({f'{per_core:.1f}'.replace('.0', '')}{name} per CPU-core)"


def _scale(size: float, step: int, units: tuple[str, ...]) -> tuple[float, str]:
    """The size in the first unit in which it is less than a step, or in the last one."""
    for name in units[:-1]:
        if size < step:
            return size, name
        size /= step
    return size, units[-1]


def round_sample(value: float) -> float:
    """A value as jobstats stores it: one decimal."""
    return round(value, 1)


def format_percent(ratio: float) -> str:
    """The percentage of one GPU: one decimal, none if it is a whole number before rounding."""
    percent = round(100 * ratio, 6)
    return f"{percent:.0f}%" if percent == int(percent) else f"{round_sample(percent)}%"


def suggest_memory_gib(used_gib: float) -> int:
    """The memory to ask for after a peak: a fifth more, rounded up; above 30, 100 and 1000 in steps of 5, 10 and 100."""
    with_margin = -(-1.2 * used_gib // 1)
    if with_margin <= 30:
        return max(1, int(with_margin))
    step = 5 if with_margin <= 100 else 10 if with_margin <= 1000 else 100
    return int(-(-with_margin // step) * step)
