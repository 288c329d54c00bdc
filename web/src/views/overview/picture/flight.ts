// The progress of an animation of the camera and of moving units. Pure.

import type { Projection } from "../../../layers/squares/marks.ts";
import { mixCameras } from "./camera.ts";

export interface Flight {
  /** Null until its first frame: what comes before that would be a jump. */
  readonly start: number | null;
  readonly from: Projection;
  readonly durationMs: number;
  readonly movesUnits: boolean;
}

/** 0–1, slow at both ends; 1 where nothing flies. */
export function progressOf(flight: Flight | null, now: number): number {
  if (flight === null || flight.durationMs === 0) return 1;
  if (flight.start === null) return 0;
  const ratio = Math.min(1, Math.max(0, (now - flight.start) / flight.durationMs));
  return ratio * ratio * (3 - 2 * ratio);
}

/** Where the camera is on its way to `target`. */
export function cameraAt(flight: Flight | null, target: Projection, now: number): Projection {
  return flight === null ? target : mixCameras(flight.from, target, progressOf(flight, now));
}
