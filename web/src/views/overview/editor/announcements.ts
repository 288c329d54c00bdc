// Screen reader announcements while a layer is dragged.

import type { Announcements, ScreenReaderInstructions, UniqueIdentifier } from "@dnd-kit/core";

export const INSTRUCTIONS: ScreenReaderInstructions = {
  draggable:
    "Press Space to pick up the layer, arrow keys to move it, Space to drop it, Escape to cancel. " +
    "Alt with an arrow key moves it immediately, Delete removes it, Enter opens its settings.",
};

/** `titleOf`: the layer's name; `placeOf`: its number among the layers, from 1. */
export function makeAnnouncements(
  titleOf: (id: UniqueIdentifier) => string,
  placeOf: (id: UniqueIdentifier) => number,
  count: number,
): Announcements {
  const announcePickedUp = (id: UniqueIdentifier) => `${titleOf(id)} picked up, layer ${placeOf(id)} of ${count}.`;
  return {
    onDragStart: ({ active }) => announcePickedUp(active.id),
    // A layer is over its own place as soon as it is taken.
    onDragOver({ active, over }) {
      if (over === null) return;
      if (over.id === active.id) return announcePickedUp(active.id);
      return `${titleOf(active.id)} would be layer ${placeOf(over.id)} of ${count}.`;
    },
    onDragEnd: ({ active, over }) =>
      over
        ? `${titleOf(active.id)} is now layer ${placeOf(over.id)} of ${count}.`
        : `${titleOf(active.id)} returned to its place.`,
    onDragCancel: ({ active }) => `${titleOf(active.id)} returned to its place.`,
  };
}
