// Computes layouts beside the page, so that it never blocks. One request, one answer.

import { listBuffers } from "../../../layout/layout.ts";
import { type LayoutRequest, layoutToFit } from "./fit-layout.ts";

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  const layout = layoutToFit(data);
  self.postMessage(layout, { transfer: [...listBuffers(layout)] });
};
