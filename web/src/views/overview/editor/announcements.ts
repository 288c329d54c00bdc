// What is said to those who hear the page while a layer is dragged, with the words for its place.

import type { Announcements, ScreenReaderInstructions, UniqueIdentifier } from "@dnd-kit/core";

export const INSTRUCTIONS: ScreenReaderInstructions = {
  draggable:
    "Press Space to take the layer, arrow keys to move it, Space to put it down, Escape to give up. " +
    "Alt with an arrow key moves it at once, Delete removes it, Enter opens its settings.",
};

/** `titleOf`: the layer's name; `placeOf`: its number among the layers, from 1. */
export function makeAnnouncements(
  titleOf: (id: UniqueIdentifier) => string,
  placeOf: (id: UniqueIdentifier) => number,
  count: number,
): Announcements {
  const taken = (id: UniqueIdentifier) => `${titleOf(id)} taken, layer ${placeOf(id)} of ${count}.`;
  return {
    onDragStart: ({ active }) => taken(active.id),
    // A layer is over its own place as soon as it is taken.
    onDragOver({ active, over }) {
      if (over === null) return;
      if (over.id === active.id) return taken(active.id);
      return `${titleOf(active.id)} would be layer ${placeOf(over.id)} of ${count}.`;
    },
    onDragEnd: ({ active, over }) =>
      over ? `${titleOf(active.id)} is now layer ${placeOf(over.id)} of ${count}.` : `${titleOf(active.id)} put back.`,
    onDragCancel: ({ active }) => `${titleOf(active.id)} put back.`,
  };
}
