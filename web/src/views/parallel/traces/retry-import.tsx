// Button that retries a failed import, with the error if the server refuses.

import { useState } from "react";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useReadAgain } from "../../../data/traces.ts";
import { Button } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";

export function RetryImport({ trace }: { readonly trace: string }) {
  const retryImport = useReadAgain(trace);
  const [problem, setProblem] = useState<string | null>(null);
  const retry = () => {
    setProblem(null);
    retryImport().catch((error: unknown) => setProblem(toSentence(toProblem(error).message)));
  };
  return (
    <>
      <Button onClick={retry}>
        <Icon name="retry" size={14} /> Retry import
      </Button>
      {problem && <span role="status">{problem}</span>}
    </>
  );
}
