// Screen reader announcements while a layer is dragged.

import type { Announcements, DragOverEvent, ScreenReaderInstructions, UniqueIdentifier } from "@dnd-kit/core";
import { attributeOfId, PALETTE } from "./places.ts";

export const INSTRUCTIONS: ScreenReaderInstructions = {
  draggable:
    "Press Space to pick up the layer, arrow keys to move it, Space to drop it, Escape to cancel. " +
    "Alt with an arrow key moves it immediately, Delete removes it, Enter opens its settings. " +
    "Attributes of the palette are added where they are dropped; a layer dropped in the palette is removed.",
};

interface Places {
  /** The name of a layer, or of an attribute of the palette. */
  titleOf(id: UniqueIdentifier): string;
  /** The number among the layers, from 1. */
  placeOf(id: UniqueIdentifier): number;
  /** The number that a dragged attribute would get, from 1; null: none. */
  placeOfNew(event: Pick<DragOverEvent, "active" | "over">): number | null;
  readonly count: number;
}

export function makeAnnouncements({ titleOf, placeOf, placeOfNew, count }: Places): Announcements {
  const announcePickedUp = (id: UniqueIdentifier) =>
    attributeOfId(id) === null
      ? `${titleOf(id)} picked up, layer ${placeOf(id)} of ${count}.`
      : `${titleOf(id)} picked up from the palette.`;
  return {
    onDragStart: ({ active }) => announcePickedUp(active.id),
    // A layer is over its own place as soon as it is taken.
    onDragOver({ active, over }) {
      if (attributeOfId(active.id) !== null) {
        const place = placeOfNew({ active, over });
        return place === null ? undefined : `${titleOf(active.id)} would be layer ${place} of ${count + 1}.`;
      }
      if (over === null) return;
      if (over.id === active.id) return announcePickedUp(active.id);
      if (over.id === PALETTE) return `${titleOf(active.id)} would be removed.`;
      return `${titleOf(active.id)} would be layer ${placeOf(over.id)} of ${count}.`;
    },
    onDragEnd({ active, over }) {
      if (attributeOfId(active.id) !== null) {
        const place = placeOfNew({ active, over });
        return place === null ? `${titleOf(active.id)} not added.` : `${titleOf(active.id)} added as layer ${place}.`;
      }
      if (over?.id === PALETTE) return `${titleOf(active.id)} removed.`;
      return over && placeOf(over.id) > 0
        ? `${titleOf(active.id)} is now layer ${placeOf(over.id)} of ${count}.`
        : `${titleOf(active.id)} returned to its place.`;
    },
    onDragCancel: ({ active }) =>
      attributeOfId(active.id) === null ? `${titleOf(active.id)} returned to its place.` : "Nothing added.",
  };
}
