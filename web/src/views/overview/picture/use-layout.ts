// The layout of the current units, computed by a worker. The last one stays until the next one arrives; of several
// requests meanwhile only the newest is computed.

import { useEffect, useRef, useState } from "react";
import type { Units } from "../../../data/units.ts";
import type { View } from "../../../layout/grammar.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import { ruleOfAttribute } from "../../../state/rules.ts";
import type { Size } from "./camera.ts";
import type { LayoutRequest } from "./fit-layout.ts";
import { listAttributes, pickColumns } from "./unit-columns.ts";

export interface PlacedUnits {
  readonly layout: UnitLayout;
  /** The units of the layout: its rows are valid only for this snapshot. */
  readonly units: Units;
  readonly view: View;
}

let spare: LayoutWorker | null = null;

/** A worker takes a while to start: it is there before the view is. */
export function startLayoutWorker(): void {
  spare ??= createLayoutWorker();
}

export function useLayoutWorker(isNeeded: boolean): LayoutWorker | null {
  const [worker, setWorker] = useState<LayoutWorker | null>(null);
  useEffect(() => {
    if (!isNeeded) return;
    const created = spare ?? createLayoutWorker();
    spare = null;
    setWorker(created);
    return () => {
      created.end();
      setWorker(null);
    };
  }, [isNeeded]);
  return worker;
}

export function useLayout(
  worker: LayoutWorker | null,
  units: Units,
  view: View,
  space: Size | null,
  filtered: Uint8Array | null,
  /** Another number: pack again, whatever could stay where it is. */
  packing: number,
): PlacedUnits | null {
  const hidden = useStableMask(view.filtered === "vanish" ? filtered : null);
  const [placed, setPlaced] = useState<PlacedUnits | null>(null);
  const latest = useRef(units);
  useEffect(() => {
    latest.current = units;
  }, [units]);
  const { snapshot } = units;
  const available = listAvailable(units, view);
  // Values change with every tick, places only with the inventory: nothing moves under the pointer without a reason. A
  // metric that comes after the view asked for it is one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    if (worker === null || space === null) return;
    const newest = latest.current;
    const matching = newest.snapshot === snapshot ? newest : { snapshot, tick: null };
    worker.ask({ units: matching, view, space, filtered: hidden, packing, onPlaced: setPlaced });
  }, [worker, snapshot, view, space, hidden, available, packing]);
  return placed;
}

/** The metrics a view groups or sorts by that are here already, and what the rules say where it asks for that. */
function listAvailable({ tick, rules }: Units, view: View): string {
  const available = listAttributes(view).filter((name) => tick !== null && tick.find(name) !== null);
  const hasRules = listAttributes(view).some((name) => name === "violations" || ruleOfAttribute(name) !== null);
  return `${available.join(" ")} ${hasRules ? rules?.version : ""}`;
}

/** The mask of before where the new one says the same: a tick that changes nothing moves nothing. */
function useStableMask(mask: Uint8Array | null): Uint8Array | null {
  const last = useRef(mask);
  const isSame =
    last.current?.length === mask?.length && (mask?.every((flag, row) => last.current?.[row] === flag) ?? true);
  useEffect(() => {
    if (!isSame) last.current = mask;
  }, [mask, isSame]);
  return isSame ? last.current : mask;
}

interface Question {
  readonly units: Units;
  readonly view: View;
  readonly space: Size;
  readonly filtered: Uint8Array | null;
  readonly packing: number;
  onPlaced(placed: PlacedUnits): void;
}

export interface LayoutWorker {
  ask(question: Question): void;
  end(): void;
}

function createLayoutWorker(): LayoutWorker {
  const worker = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
  let current: Question | null = null;
  let next: Question | null = null;
  const send = (question: Question) => {
    const { units, view, space, filtered, packing } = question;
    current = question;
    next = null;
    const columns = pickColumns(units, view);
    worker.postMessage({ view, columns, space, filtered, packing } satisfies LayoutRequest);
  };
  worker.onmessage = ({ data }: MessageEvent<UnitLayout>) => {
    const answered = current;
    current = null;
    if (next !== null) send(next);
    else answered?.onPlaced({ layout: data, units: answered.units, view: answered.view });
  };
  return {
    ask(question) {
      if (current === null) send(question);
      else next = question;
    },
    end: () => worker.terminate(),
  };
}
