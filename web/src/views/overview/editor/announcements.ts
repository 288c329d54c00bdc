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
  return {
    onDragStart: ({ active }) => `${titleOf(active.id)} taken, layer ${placeOf(active.id)} of ${count}.`,
    onDragOver: ({ active, over }) =>
      over ? `${titleOf(active.id)} would be layer ${placeOf(over.id)} of ${count}.` : undefined,
    onDragEnd: ({ active, over }) =>
      over ? `${titleOf(active.id)} is now layer ${placeOf(over.id)} of ${count}.` : `${titleOf(active.id)} put back.`,
    onDragCancel: ({ active }) => `${titleOf(active.id)} put back.`,
  };
}
