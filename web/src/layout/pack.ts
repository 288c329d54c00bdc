// Pack: boxes in a strip with little empty space, by best fit on the skyline (Burke, Kendall and Whitwell 2004): the
// lowest gap takes the widest box that fits, the tallest of equally wide ones. O(n log n). Equal boxes keep their order.

import { type Boxes, chooseWidth, EPSILON, type Extent } from "./boxes.ts";

export interface Packer {
  /** Places boxes `from` … `to` so that they come near to the shape of `target`. */
  arrange(boxes: Boxes, from: number, to: number, gap: number, target: Extent): Extent;
  /** Places them in a strip of this width; null where one of them is wider. */
  fill(boxes: Boxes, from: number, to: number, gap: number, width: number): Extent | null;
}

/** Holds the scratch arrays for up to `capacity` boxes at a time. */
export function createPacker(capacity: number): Packer {
  const shapes = createShapes(capacity);
  const skyline = createSkyline(capacity);

  function pack(boxes: Boxes, gap: number, stripWidth: number): Extent {
    const { x, y, width, height } = boxes;
    shapes.refill();
    skyline.reset(stripWidth + gap);
    let right = 0;
    let bottom = 0;
    for (let remaining = shapes.boxCount(); remaining > 0; ) {
      const box = shapes.take(skyline.gapWidth() - gap + EPSILON);
      if (box === null) {
        skyline.raise();
        continue;
      }
      const boxWidth = width[box] ?? 0;
      const boxHeight = height[box] ?? 0;
      x[box] = skyline.gapX();
      y[box] = skyline.gapY();
      right = Math.max(right, (x[box] ?? 0) + boxWidth);
      bottom = Math.max(bottom, (y[box] ?? 0) + boxHeight);
      remaining -= 1;
      skyline.place(boxWidth + gap, boxHeight + gap);
    }
    return { width: right, height: bottom };
  }

  return {
    arrange(boxes, from, to, gap, target) {
      if (to - from === 1) {
        boxes.x[from] = 0;
        boxes.y[from] = 0;
        return { width: boxes.width[from] ?? 0, height: boxes.height[from] ?? 0 };
      }
      shapes.read(boxes, from, to);
      const aspect = target.width / target.height;
      const firstWidth = Math.sqrt(sumAreas(boxes, from, to, gap) * aspect);
      const width = chooseWidth(target, shapes.widest(), firstWidth, (trial) => pack(boxes, gap, trial));
      return pack(boxes, gap, width);
    },
    fill(boxes, from, to, gap, width) {
      shapes.read(boxes, from, to);
      return shapes.widest() > width + EPSILON ? null : pack(boxes, gap, width);
    },
  };
}

function sumAreas({ width, height }: Boxes, from: number, to: number, gap: number): number {
  let area = 0;
  for (let box = from; box < to; box += 1) area += ((width[box] ?? 0) + gap) * ((height[box] ?? 0) + gap);
  return area;
}

/** The boxes still to place, by shape: widest first, then tallest, equals in order. */
function createShapes(capacity: number) {
  const order = new Uint32Array(capacity);
  const shapeWidth = new Float64Array(capacity);
  const shapeStart = new Uint32Array(capacity + 1);
  const placedCount = new Uint32Array(capacity);
  /** The nearest shape from here on that may have boxes left; paths are halved as they are walked. */
  const following = new Uint32Array(capacity + 1);
  let shapeCount = 0;
  let count = 0;

  function sortByShape({ width, height }: Boxes, from: number): void {
    let isSorted = true;
    for (let index = 0; index < count; index += 1) {
      order[index] = from + index;
      if (index > 0 && compare(from + index - 1, from + index) > 0) isSorted = false;
    }
    if (!isSorted) order.subarray(0, count).sort(compare);

    function compare(a: number, b: number): number {
      return (width[b] ?? 0) - (width[a] ?? 0) || (height[b] ?? 0) - (height[a] ?? 0) || a - b;
    }
  }

  function findLeft(shape: number): number {
    let at = shape;
    while (at < shapeCount && (following[at] ?? 0) !== at) {
      const next = following[at] ?? 0;
      following[at] = following[next] ?? 0;
      at = following[at] ?? 0;
    }
    return at;
  }

  return {
    read(boxes: Boxes, from: number, to: number): void {
      count = to - from;
      sortByShape(boxes, from);
      shapeCount = 0;
      for (let index = 0; index < count; index += 1) {
        const box = order[index] ?? 0;
        const before = order[index - 1] ?? box;
        const width = boxes.width[box] ?? 0;
        if (index > 0 && boxes.width[before] === width && boxes.height[before] === boxes.height[box]) continue;
        shapeWidth[shapeCount] = width;
        shapeStart[shapeCount] = index;
        shapeCount += 1;
      }
      shapeStart[shapeCount] = count;
    },
    refill(): void {
      placedCount.fill(0, 0, shapeCount);
      for (let shape = 0; shape <= shapeCount; shape += 1) following[shape] = shape;
    },
    boxCount: () => count,
    widest: () => shapeWidth[0] ?? 0,
    /** The widest box left that is not wider than this; null if there is none. */
    take(maxWidth: number): number | null {
      let low = 0;
      let high = shapeCount;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((shapeWidth[middle] ?? 0) <= maxWidth) high = middle;
        else low = middle + 1;
      }
      const shape = findLeft(low);
      if (shape >= shapeCount) return null;
      const first = (shapeStart[shape] ?? 0) + (placedCount[shape] ?? 0);
      placedCount[shape] = (placedCount[shape] ?? 0) + 1;
      if (first + 1 === shapeStart[shape + 1]) following[shape] = shape + 1;
      return order[first] ?? null;
    },
  };
}

const NONE = 0xffffffff;

/** The upper border of what is placed, as segments from left to right; the lowest, leftmost of them is the gap. */
function createSkyline(capacity: number) {
  const x = new Float64Array(capacity + 1);
  const y = new Float64Array(capacity + 1);
  const width = new Float64Array(capacity + 1);
  const next = new Uint32Array(capacity + 1);
  const previous = new Uint32Array(capacity + 1);
  const isGone = new Uint8Array(capacity + 1);
  /** Binary heap of all segments but the gap, lowest first; those that are gone are passed over. */
  const heap = new Uint32Array(2 * capacity + 2);
  let heapSize = 0;
  let segmentCount = 0;
  let gap = 0;

  function isLower(a: number, b: number): boolean {
    const order = (y[a] ?? 0) - (y[b] ?? 0);
    return order < 0 || (order === 0 && (x[a] ?? 0) < (x[b] ?? 0));
  }

  function push(segment: number): void {
    let at = heapSize;
    heapSize += 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = heap[above] ?? 0;
      if (!isLower(segment, other)) break;
      heap[at] = other;
      at = above;
    }
    heap[at] = segment;
  }

  function pop(): number {
    const lowest = heap[0] ?? 0;
    heapSize -= 1;
    const segment = heap[heapSize] ?? 0;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heapSize) break;
      if (below + 1 < heapSize && isLower(heap[below + 1] ?? 0, heap[below] ?? 0)) below += 1;
      const other = heap[below] ?? 0;
      if (!isLower(other, segment)) break;
      heap[at] = other;
      at = below;
    }
    heap[at] = segment;
    return lowest;
  }

  function popGap(): void {
    do gap = pop();
    while (isGone[gap] === 1);
  }

  function link(left: number, right: number): void {
    if (left !== NONE) next[left] = right;
    if (right !== NONE) previous[right] = left;
  }

  function isLevel(a: number, b: number): boolean {
    return a !== NONE && b !== NONE && Math.abs((y[a] ?? 0) - (y[b] ?? 0)) < EPSILON;
  }

  /** Neighbors at the same height become part of the segment. */
  function absorbLevel(segment: number): void {
    const left = previous[segment] ?? NONE;
    if (isLevel(left, segment)) {
      x[segment] = x[left] ?? 0;
      y[segment] = Math.max(y[segment] ?? 0, y[left] ?? 0);
      width[segment] = (width[segment] ?? 0) + (width[left] ?? 0);
      isGone[left] = 1;
      link(previous[left] ?? NONE, segment);
    }
    const right = next[segment] ?? NONE;
    if (isLevel(segment, right)) {
      y[segment] = Math.max(y[segment] ?? 0, y[right] ?? 0);
      width[segment] = (width[segment] ?? 0) + (width[right] ?? 0);
      isGone[right] = 1;
      link(segment, next[right] ?? NONE);
    }
  }

  function addSegment(atX: number, atY: number, segmentWidth: number): number {
    const segment = segmentCount;
    segmentCount += 1;
    x[segment] = atX;
    y[segment] = atY;
    width[segment] = segmentWidth;
    next[segment] = NONE;
    previous[segment] = NONE;
    isGone[segment] = 0;
    return segment;
  }

  return {
    reset(stripWidth: number): void {
      heapSize = 0;
      segmentCount = 0;
      gap = addSegment(0, 0, stripWidth);
    },
    gapX: () => x[gap] ?? 0,
    gapY: () => y[gap] ?? 0,
    gapWidth: () => width[gap] ?? 0,
    /** Puts something at the left end of the gap. */
    place(placedWidth: number, placedHeight: number): void {
      const left = previous[gap] ?? NONE;
      const right = next[gap] ?? NONE;
      const rest = (width[gap] ?? 0) - placedWidth;
      if (rest < EPSILON) {
        y[gap] = (y[gap] ?? 0) + placedHeight;
        absorbLevel(gap);
        push(gap);
        popGap();
        return;
      }
      const placed = addSegment(x[gap] ?? 0, (y[gap] ?? 0) + placedHeight, placedWidth);
      x[gap] = (x[gap] ?? 0) + placedWidth;
      width[gap] = rest;
      link(left, placed);
      link(placed, gap);
      link(gap, right);
      absorbLevel(placed);
      push(placed);
    },
    /** Gives up the gap: fills it to its lower neighbor. */
    raise(): void {
      const left = previous[gap] ?? NONE;
      const right = next[gap] ?? NONE;
      const leftY = left === NONE ? Number.POSITIVE_INFINITY : (y[left] ?? 0);
      const rightY = right === NONE ? Number.POSITIVE_INFINITY : (y[right] ?? 0);
      y[gap] = Math.min(leftY, rightY);
      absorbLevel(gap);
      push(gap);
      popGap();
    },
  };
}
