// Asks for a failed import once more; says why where the server will not.

import { useState } from "react";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useReadAgain } from "../../../data/traces.ts";
import { Button } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";

export function ReadAgain({ trace }: { readonly trace: string }) {
  const readAgain = useReadAgain(trace);
  const [problem, setProblem] = useState<string | null>(null);
  const ask = () => {
    setProblem(null);
    readAgain().catch((error: unknown) => setProblem(toSentence(toProblem(error).message)));
  };
  return (
    <>
      <Button onClick={ask}>
        <Icon name="retry" size={14} /> Read again
      </Button>
      {problem && <span role="status">{problem}</span>}
    </>
  );
}
