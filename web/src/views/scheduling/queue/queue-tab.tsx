// The queue: who waits, how long, why, and until when; and what would change that.

import { ViewLayout } from "../../../widgets/view-layout.tsx";

export default function QueueTab() {
  return (
    <ViewLayout strip={null} controls={null} details={null}>
      <p>Nothing waits.</p>
    </ViewLayout>
  );
}
