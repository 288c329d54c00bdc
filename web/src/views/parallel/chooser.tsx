// List of traces to open, and a box to upload one.

import { openTrace } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./chooser.module.css";
import { TraceList } from "./traces/trace-list.tsx";
import { UploadBox } from "./traces/upload-box.tsx";

export function Chooser({ workload }: { workload: string | null }) {
  const change = useChangeScreen();
  return (
    <main className={styles.page}>
      <header>
        <h1>Open a trace</h1>
        <p>
          A trace records what every rank of a distributed run did and when. Supported formats: PyTorch profiler, Nsight
          Systems, Megatron-LM, MindSpore, StragglerAnalysis. Upload one file per rank, as files, a folder or an
          archive.
        </p>
      </header>
      <UploadBox workload={workload} onStarted={() => {}} />
      <TraceList workload={workload} current={null} onOpen={(trace) => change(openTrace(trace))} />
      <p className={styles.how}>
        From a shell: <code>clusterscape trace import DIR{workload ? ` --workload ${workload}` : ""}</code>. Best with
        three steps or more, all ranks, and <code>record_function("forward mb3")</code> around the passes of a pipeline.
      </p>
    </main>
  );
}
