"""XID error codes of NVIDIA's driver: what each means and what it requires.

Actions follow the resolution buckets of NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors) as NVSentinel maps them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class XidAction(StrEnum):
    """What an error requires, the least first."""

    IGNORE = "ignore"
    RESTART_APP = "restart_app"
    RESET_GPU = "reset_gpu"
    REBOOT = "reboot"
    PROCEDURE = "procedure"
    REPORT = "report"


ADVICE: Mapping[XidAction, str] = MappingProxyType(
    {
        XidAction.IGNORE: "nothing to do by itself",
        XidAction.RESTART_APP: "restart the program, and check it if the error comes again",
        XidAction.RESET_GPU: "drain the node and reset the GPU",
        XidAction.REBOOT: "drain the node and reboot it",
        XidAction.PROCEDURE: "drain the node and run dcgmi diag -r 3; NVIDIA's catalogue has the procedure",
        XidAction.REPORT: "collect nvidia-bug-report.sh and report it to NVIDIA",
    }
)


@dataclass(frozen=True, slots=True)
class Xid:
    """One code. ``meaning``: empty if NVIDIA does not describe it."""

    code: int
    meaning: str
    action: XidAction

    @property
    def needs_operator(self) -> bool:
        """Whether the hardware or the driver needs attention, whatever the program does."""
        return self.action not in (XidAction.IGNORE, XidAction.RESTART_APP)

    def describe(self) -> str:
        """``XID 79: GPU has fallen off the bus; drain the node and reboot it``."""
        meaning = f": {self.meaning}" if self.meaning else ""
        return f"XID {self.code}{meaning}; {ADVICE[self.action]}"


_MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        8: "GPU stopped processing",
        11: "invalid or corrupted push buffer",
        13: "graphics engine exception, usually an invalid access by the program",
        25: "invalid or illegal push buffer",
        31: "GPU memory page fault, usually an invalid address in the program",
        32: "invalid or corrupted push buffer",
        37: "driver firmware error",
        38: "driver firmware error",
        43: "GPU stopped processing because of an error of the program",
        44: "graphics engine fault during a context switch",
        45: "cleanup after an earlier error, or after the program was killed",
        46: "GPU stopped processing",
        48: "double-bit ECC error",
        54: "auxiliary power is not connected",
        60: "video processor exception",
        62: "internal microcontroller halt",
        63: "row remapping or page retirement recorded",
        64: "row remapping or page retirement failed",
        68: "video decoder exception",
        69: "graphics engine class error",
        74: "NVLink error",
        78: "vGPU start error",
        79: "GPU has fallen off the bus",
        92: "high rate of single-bit ECC errors",
        93: "wear limit of the InfoROM exceeded",
        94: "contained ECC error: only the program that met it is affected",
        95: "uncontained ECC error: all programs on the GPU are affected",
        109: "context switch timeout",
        110: "security fault",
        119: "timeout of the GPU system processor (GSP)",
        120: "error of the GPU system processor (GSP)",
        121: "corrected error of the C2C link",
        136: "link training failed",
        137: "NVLink privilege error",
        140: "unrecovered ECC error",
        143: "GPU initialization failed",
        **dict.fromkeys(range(144, 151), "NVLink 5 error"),
        151: "key rotation error",
        154: "the required recovery changed: see the other errors of this GPU",
        160: "channel retirement",
    }
)


def _range(*codes: int | range) -> Iterable[int]:
    for code in codes:
        yield from (code,) if isinstance(code, int) else code


_ACTIONS: Mapping[XidAction, Iterable[int]] = {
    XidAction.RESTART_APP: _range(
        8, 11, 13, 25, 31, 32, range(39, 42), 45, 60, range(68, 73), range(75, 78), 80, range(82, 87), 88, 89, 94,
        range(96, 106), range(126, 136), 139,
    ),
    XidAction.IGNORE: _range(
        14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153, 157, 161
    ),
    XidAction.RESET_GPU: _range(46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 162),
    XidAction.REBOOT: _range(79, 151, 160),
    XidAction.PROCEDURE: _range(48, 54, 74, 78, range(144, 151), 154, 159),
}  # fmt: skip

XIDS: Mapping[int, Xid] = MappingProxyType(
    {code: Xid(code, _MEANINGS.get(code, ""), action) for action, codes in _ACTIONS.items() for code in codes}
)


def find_xid(code: int) -> Xid:
    """The error with this code; codes outside the table are to be reported to NVIDIA."""
    return XIDS.get(code) or Xid(code, _MEANINGS.get(code, ""), XidAction.REPORT)
