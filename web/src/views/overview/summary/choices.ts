// What a click on a number of the summary strip shows: its units, in a suitable arrangement. Pure.

import { clearFilters, colorBy, type ScreenChange, setNames, setRange } from "../../../state/changes.ts";
import type { PictureName } from "../../../state/picture.ts";
import type { Screen } from "../../../state/screen.ts";

export type Shown =
  | { readonly kind: "all" }
  | { readonly kind: "state"; readonly states: readonly string[] }
  | { readonly kind: "health"; readonly health: readonly string[] }
  | { readonly kind: "use" }
  | { readonly kind: "waste" }
  | { readonly kind: "queue" }
  | { readonly kind: "free"; readonly partition: string }
  | { readonly kind: "stranded" };

/** As the server judges: below this a GPU counts as idle. */
const IDLE_BELOW = 0.05;

export function showUnits(shown: Shown): ScreenChange {
  switch (shown.kind) {
    case "all":
      return showGpus();
    case "state":
      return showGpus(setNames("unit_state", shown.states));
    case "health":
      return showGpus(setNames("unit_health", shown.health));
    case "use":
      return showGpus(setNames("unit_state", ["allocated"]), colorBy("gpu_util_ratio"));
    case "waste":
      return showGpus(
        setNames("unit_state", ["allocated"]),
        setRange("gpu_util_ratio", { min: null, max: IDLE_BELOW }),
        colorBy("gpu_util_ratio"),
      );
    case "queue":
      return arranged("waiting-by-resource-type");
    case "free":
      return arranged(
        "fragmentation-by-host",
        setNames("unit_state", ["free"]),
        setNames("partition", [shown.partition]),
      );
    case "stranded":
      return arranged("fragmentation-by-host", setNames("free_use", ["stranded"]));
  }
}

/** In the arrangement there is, unless that shows only what is waited for. */
function showGpus(...changes: readonly ScreenChange[]): ScreenChange {
  return (screen) =>
    screen.picture === "waiting-by-resource-type"
      ? arranged("who-uses-what", ...changes)(screen)
      : apply(clearFilters(asUnits(screen)), changes);
}

function arranged(picture: PictureName, ...changes: readonly ScreenChange[]): ScreenChange {
  return (screen) => apply({ ...clearFilters(screen), table: "picture", picture, layout: null, color: null }, changes);
}

/** Workloads and nodes have no such units: the picture has. */
function asUnits(screen: Screen): Screen {
  return screen.table === "units" ? screen : { ...screen, table: "picture", sort: null };
}

function apply(screen: Screen, changes: readonly ScreenChange[]): Screen {
  return changes.reduce((changed, change) => change(changed), screen);
}
