// The largest job that could start now, for the most informative place; a click lists all partitions and machine types.

import * as Popover from "@radix-ui/react-popover";
import type { PartitionSummary } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { PopupContent } from "../../../widgets/popup.tsx";
import { FigureButton } from "../../../widgets/strip.tsx";
import { describePlace, findKeyPlace, listPlaces, nameOf, type Place } from "./startable.ts";
import own from "./startable-figure.module.css";
import styles from "./summary-strip.module.css";

interface StartableFigureProps {
  readonly partitions: readonly PartitionSummary[];
  onShow(partition: string): void;
}

export function StartableFigure({ partitions, onShow }: StartableFigureProps) {
  const places = listPlaces(partitions);
  const place = findKeyPlace(places);
  if (place === null) return null;
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <FigureButton
          isBad={place.isFragmented}
          aria-label={`${formatPlural(place.largestGpus, "GPU")} ${formatPlace(place).join(" ")}: largest job that can start now, ${nameOf(place)}`}
        >
          <b>{formatPlural(place.largestGpus, "GPU")}</b>{" "}
          <span>
            {formatPlace(place)[0]}
            <span className={styles.wide}> {formatPlace(place)[1]}</span>
          </span>
        </FigureButton>
      </Popover.Trigger>
      <PopupContent className={own.places} align="center" aria-label="What could start now">
        <Places places={places} onShow={onShow} />
      </PopupContent>
    </Popover.Root>
  );
}

/** In a few words, and what is added where there is room. */
function formatPlace({ isFragmented, gpus_per_node, free, partition }: Place): readonly [brief: string, more: string] {
  if (!isFragmented) return ["largest job", `that can start now, in ${partition}`];
  return [`no ${gpus_per_node}-GPU job can start`, `although ${formatCount(free)} are free in ${partition}`];
}

function Places({ places, onShow }: { places: readonly Place[]; onShow: (partition: string) => void }) {
  return (
    <>
      <h2>What could start now</h2>
      <table>
        <thead>
          <tr>
            <th>Partition</th>
            <th data-tip="The largest job on one node">On one node</th>
            <th data-tip="Completely free nodes">Whole nodes</th>
            <th>Free</th>
            <th data-tip="Free, but no waiting workload of the partition can use them">Stranded</th>
          </tr>
        </thead>
        <tbody>
          {places.map((place) => (
            <tr key={nameOf(place)} data-short={place.isFragmented || undefined}>
              <th scope="row">
                <button type="button" onClick={() => onShow(place.partition)} data-tip="Show its free GPUs">
                  {place.partition}
                </button>
                <small>{place.machine_type}</small>
              </th>
              <td>
                {formatCount(place.one_node_gpus)}
                <small> of {formatCount(place.gpus_per_node)}</small>
              </td>
              <td>{formatCount(place.whole_nodes)}</td>
              <td>{formatCount(place.free)}</td>
              <td>{formatCount(place.stranded)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <ul>
        {places.map((place) => (
          <li key={nameOf(place)} data-short={place.isFragmented || undefined}>
            {place.partition}: {describePlace(place)}
          </li>
        ))}
      </ul>
      <p>Considers GPUs only: CPUs, memory, limits and reservations may prevent a start.</p>
    </>
  );
}
