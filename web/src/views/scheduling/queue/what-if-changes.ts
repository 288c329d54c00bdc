// Changes of a what-if, and the starts that they change. Pure: no component, no request.

import type { StartChange } from "../../../api/generated.ts";
import type { WhatIfChoice } from "../../../state/scheduling.ts";

export const NODE_CHANGES = { add: "more nodes in", cap: "GPUs at most in", drain: "drained node" } as const;
export type NodeChange = keyof typeof NODE_CHANGES;

/** Empty where no node or partition is named. A partition has one number of added nodes and one limit: the last one counts. */
export function changeNodes(
  choice: WhatIfChoice,
  kind: NodeChange,
  target: string,
  count: number,
): Partial<WhatIfChoice> {
  if (target === "") return {};
  if (kind === "drain") return { drained: [...new Set([...choice.drained, target])] };
  const set = (pairs: readonly string[]) => [
    ...pairs.filter((pair) => !pair.startsWith(`${target}:`)),
    `${target}:${count}`,
  ];
  return kind === "add" ? { added: set(choice.added) } : { limits: set(choice.limits) };
}

export interface Chip {
  readonly key: string;
  readonly words: string;
  /** The change that removes it. */
  readonly without: Partial<WhatIfChoice>;
}

/** Changes that no menu shows. */
export function listChips({ added, limits, drained, first }: WhatIfChoice): readonly Chip[] {
  const without = (names: readonly string[], name: string) => names.filter((other) => other !== name);
  return [
    ...added.map((pair) => {
      const [partition, count] = splitPair(pair);
      return {
        key: `add ${pair}`,
        words: `+${count} nodes in ${partition}`,
        without: { added: without(added, pair) },
      };
    }),
    ...limits.map((pair) => {
      const [partition, count] = splitPair(pair);
      return {
        key: `cap ${pair}`,
        words: `≤ ${count} GPUs in ${partition}`,
        without: { limits: without(limits, pair) },
      };
    }),
    ...drained.map((name) => ({
      key: `drain ${name}`,
      words: `${name} drained`,
      without: { drained: without(drained, name) },
    })),
    ...first.map((name) => ({
      key: `first ${name}`,
      words: `${name} first`,
      without: { first: without(first, name) },
    })),
  ];
}

/** Partition and number; the name of a partition may contain colons. */
function splitPair(pair: string): readonly [string, string] {
  const at = pair.lastIndexOf(":");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

const NOTICEABLE_S = 60;

/** Workloads that start noticeably sooner or later, the largest change first. */
export function listChangedStarts(rows: readonly StartChange[]): readonly StartChange[] {
  return rows
    .filter(({ change_s }) => change_s !== null && Math.abs(change_s) >= NOTICEABLE_S)
    .toSorted((a, b) => Math.abs(b.change_s ?? 0) - Math.abs(a.change_s ?? 0));
}
