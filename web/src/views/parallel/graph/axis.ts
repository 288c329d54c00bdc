// The time axis of a graph: round ticks relative to the start of the step, in one unit.

export interface NsTick {
  readonly atNs: number;
  readonly text: string;
}

interface Unit {
  readonly ns: number;
  readonly name: string;
}

const UNITS: readonly Unit[] = [
  { ns: 1e9, name: "s" },
  { ns: 1e6, name: "ms" },
  { ns: 1e3, name: "µs" },
];
const NANOSECONDS: Unit = { ns: 1, name: "ns" };
const ROUND = [1, 2, 2.5, 5, 10];
const NBSP = "\u00a0";

/** `originNs`: the 0 of the axis. At most `maxTicks` ticks. */
export function listNsTicks(fromNs: number, toNs: number, originNs: number, maxTicks: number): readonly NsTick[] {
  const minStep = Math.max(1e-3, (toNs - fromNs) / Math.max(1, maxTicks));
  const power = 10 ** Math.floor(Math.log10(minStep));
  const step = (ROUND.find((factor) => factor * power >= minStep * 0.999) ?? 10) * power;
  const unit = chooseUnit(Math.max(Math.abs(fromNs - originNs), Math.abs(toNs - originNs)), step);
  const digits = Math.max(0, Math.ceil(-Math.log10((step / unit.ns) * 1.0001)));
  const isHalf = Math.abs((step / unit.ns) * 10 ** digits - 2.5) < 1e-6;
  const ticks: NsTick[] = [];
  for (let count = Math.ceil((fromNs - originNs) / step); originNs + count * step <= toNs; count += 1) {
    const value = (count * step) / unit.ns;
    const text = value.toFixed(isHalf ? digits + 1 : digits).replace(/^-(0(\.0+)?)$/, "$1");
    ticks.push({ atNs: originNs + count * step, text: `${text}${NBSP}${unit.name}` });
  }
  return ticks;
}

/** The unit with few digits before and after the decimal point. */
function chooseUnit(reachNs: number, stepNs: number): Unit {
  if (reachNs >= 10e9 || stepNs >= 1e9) return UNITS[0] as Unit;
  return [...UNITS, NANOSECONDS].find(({ ns }) => reachNs >= ns && stepNs >= ns / 1e5) ?? NANOSECONDS;
}

/** A duration with three significant digits: `5.85 ms`, `120 µs`, `1.2 s`. */
export function formatNs(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  const unit = [...UNITS, NANOSECONDS].find((candidate) => size >= candidate.ns * 0.9995) ?? NANOSECONDS;
  const value = ns / unit.ns;
  if (unit === NANOSECONDS) return `${Math.round(value)}${NBSP}ns`;
  const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}${NBSP}${unit.name}`;
}

export function formatSeconds(seconds: number | null | undefined): string {
  return formatNs(seconds === null || seconds === undefined ? null : seconds * 1e9);
}
