// Computes layouts in a worker, so that the page never blocks. One request, one response.

import { listBuffers } from "../../../layout/layout.ts";
import { createLayouter, type LayoutRequest } from "./fit-layout.ts";

const layOut = createLayouter();

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  const layout = layOut(data);
  self.postMessage(layout, { transfer: [...listBuffers(layout)] });
};
